// Asks a grblHAL controller for its state, then sends lines and waits for the answer of each.
using System;
using System.IO;
using System.Net.Sockets;

using var robot = new TcpClient("127.0.0.1", 2323);
using var stream = robot.GetStream();
using var answers = new StreamReader(stream);
using var lines = new StreamWriter(stream) { AutoFlush = true, NewLine = "\n" };

lines.Write("?"); // a real-time byte without a line end: answered at once, also in a motion
string Next() => (answers.ReadLine() ?? throw new IOException("the robot has closed")).Trim();
var line = Next();
while (!line.StartsWith("<")) line = Next();
Console.WriteLine($"state: {line}");
foreach (var command in new[] { "$G", "G4 P0.5" })
{
    lines.WriteLine(command);
    line = Next();
    while (line != "ok" && !line.StartsWith("error:"))
    {
        Console.WriteLine(line);
        line = Next();
    }
    Console.WriteLine($"{command} -> {line}");
}
