"""Test your own grblHAL sender: a machine on a free port, on virtual time. Run it with pytest."""

import socket

import pytest

from understudy.app.stand_in import StandIn

RX_BYTES = 1023


class Sender:
    """Counts characters: never more unanswered bytes than the machine's receive buffer holds."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=60)
        self._line = self._socket.makefile("rwb", buffering=0)

    def send(self, program: list[str]) -> list[str]:
        """Sends every line; returns the answers."""
        unanswered: list[int] = []
        answers: list[str] = []
        for line in program:
            data = line.encode() + b"\n"
            while sum(unanswered) + len(data) > RX_BYTES:
                answers.append(self._answer())
                del unanswered[0]
            self._line.write(data)
            unanswered.append(len(data))
        return answers + [self._answer() for _ in unanswered]

    def status(self) -> str:
        self._line.write(b"?")
        return self._read("<")

    def __enter__(self) -> "Sender":
        return self

    def __exit__(self, *exception: object) -> None:
        self._line.close()
        self._socket.close()

    def _answer(self) -> str:
        return self._read("ok", "error:")

    def _read(self, *beginnings: str) -> str:
        while True:
            line = self._line.readline().decode().strip()
            if line.startswith(beginnings):
                return line


def test_a_program_runs(grbl_robot: StandIn) -> None:
    program = ["G21 G90", *(f"G1 X{n / 10} F3000" for n in range(300)), "G4 P1"]
    with Sender(grbl_robot.host, grbl_robot.port) as sender:
        assert set(sender.send(program)) == {"ok"}  # time runs while an answer is owed
        assert sender.status().startswith("<Idle|MPos:29.900,0.000,0.000")


@pytest.mark.understudy(refusals=True)
def test_after_an_error_nothing_moves(grbl_robot: StandIn) -> None:
    with Sender(grbl_robot.host, grbl_robot.port) as sender:
        assert sender.send(["G0 X5", "G1 X9", "G0 X1"]) == ["ok", "error:22", "error:22"]
        grbl_robot.forward(seconds=10)
        assert sender.status().startswith("<Idle|MPos:5.000")


@pytest.mark.understudy(cell="default")
def test_an_arm_in_emergency_stop(grbl_robot: StandIn) -> None:
    with Sender(*grbl_robot.address("g60.grblhal")) as sender:
        assert sender.send(["G1 X90 F600"]) == ["ok"]
        grbl_robot.forward(seconds=1)
        grbl_robot.inject("emergency_stop", on="g60")
        assert sender.status().startswith("<Alarm")
