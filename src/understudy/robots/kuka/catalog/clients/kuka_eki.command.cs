// Moves a KUKA behind its G-code server (EKI): one record is one line of G-code.
using System;
using System.IO;
using System.Net.Sockets;

const int XAndF = 1 | 64; // bits of the given fields
using var robot = new TcpClient("127.0.0.1", 54601);
using var stream = robot.GetStream();
using var answers = new BinaryReader(stream); // little-endian, as the robot is

// G1 X… F100, and waits until it is done: feedback comes every 50 ms.
void MoveX(int number, float x)
{
    var record = new byte[48]; // number, type, X Y Z A B C F E, bits
    BitConverter.GetBytes(number).CopyTo(record, 0);
    BitConverter.GetBytes(x).CopyTo(record, 8);
    BitConverter.GetBytes(100f).CopyTo(record, 32);
    BitConverter.GetBytes(XAndF).CopyTo(record, 40);
    stream.Write(record);
    byte[] feedback;
    do
    {
        feedback = answers.ReadBytes(48);
    } while (BitConverter.ToInt32(feedback, 0) != number);
    Console.WriteLine($"record {number}: at X {x}, {BitConverter.ToInt32(feedback, 4)} wait");
}

MoveX(1001, 40);
MoveX(1002, 0);
