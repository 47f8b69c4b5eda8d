"""Moves a KUKA behind its G-code server (EKI): one record is one line of G-code."""

import socket
import struct

RECORD = struct.Struct("<ii8fi4x")  # number, type, X Y Z A B C F E, bits of the given fields
FEEDBACK = struct.Struct("<12i")  # number of the last done record, records that wait, …
X_AND_F = 1 | 64

with socket.create_connection(("127.0.0.1", 54601), timeout=60) as robot:
    answers = robot.makefile("rb")

    def move_x(number: int, x: float) -> None:
        """G1 X… F100, and waits until it is done."""
        robot.sendall(RECORD.pack(number, 0, x, 0, 0, 0, 0, 0, 100, 0, X_AND_F))
        done = -1
        while done != number:  # feedback comes every 50 ms
            done, waiting, *_ = FEEDBACK.unpack(answers.read(FEEDBACK.size))
        print(f"record {number}: at X {x:g}, {waiting} wait")

    move_x(1001, 40.0)
    move_x(1002, 0.0)
