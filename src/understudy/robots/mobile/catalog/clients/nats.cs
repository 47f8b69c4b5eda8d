// Commands a mobile robot on NATS and prints what becomes of it. NATS is lines of text over TCP: no
// package is needed; NATS.Net has a client with reconnects.
using System;
using System.IO;
using System.Net.Sockets;
using System.Text.Json;

const string Robot = "robot-1";
using var server = new TcpClient("127.0.0.1", 4222);
using var stream = server.GetStream();
using var answers = new StreamReader(stream);
using var lines = new StreamWriter(stream) { AutoFlush = true, NewLine = "\r\n" };

var id = Guid.NewGuid().ToString();
var body = JsonSerializer.Serialize(new
{
    messageId = id,
    correlationId = id,
    payload = new { commandType = "STOP" },
});
lines.WriteLine("CONNECT {\"verbose\":false}");
lines.WriteLine($"SUB robot.{Robot}.command.ack 1");
lines.WriteLine($"PUB robot.{Robot}.command.request {body.Length}");
lines.WriteLine(body);
while (answers.ReadLine() is { } line)
{
    if (line == "PING") lines.WriteLine("PONG");
    if (!line.StartsWith("{")) continue;
    var ack = JsonDocument.Parse(line).RootElement;
    if (!ack.TryGetProperty("correlationId", out var of) || of.GetString() != id) continue;
    var status = ack.GetProperty("payload").GetProperty("status").GetString();
    Console.WriteLine(status);
    if (status is "DONE" or "FAILED" or "REJECTED" or "CANCELED") break;
}
