"""Asks a grblHAL controller for its state, then sends lines and waits for the answer of each."""

import socket

with socket.create_connection(("127.0.0.1", 2323), timeout=60) as robot:
    answers = robot.makefile(encoding="ascii", newline="\r\n")
    robot.sendall(b"?")  # a real-time byte without a line end: answered at once, also in a motion
    while not (line := answers.readline().strip()).startswith("<"):
        print("greeting:", line)
    print("state:", line)
    for command in ("$G", "G4 P0.5"):
        robot.sendall(command.encode() + b"\n")
        while not (line := answers.readline().strip()).startswith(("ok", "error:")):
            print(line)
        print(command, "->", line)
