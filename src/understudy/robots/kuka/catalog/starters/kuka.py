"""Tests of a client of the KUKA's G-code server (EKI): one record is one line of G-code."""

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import understudy
from understudy import StandIn

HERE = Path(__file__).parent
pytestmark = pytest.mark.understudy(cell=str(HERE / "cell.yaml"))
RECORD = struct.Struct("<ii8fi4x")
FEEDBACK = struct.Struct("<12i")
X_AND_F = 1 | 64
"""The bits of the fields that a record gives."""


@pytest.fixture
def client(kuka_robot: StandIn) -> Iterator[socket.socket]:
    address = kuka_robot.address("kuka.kuka_eki.command")
    with socket.create_connection(address, timeout=10) as client:
        yield client


def feedback(client: socket.socket) -> tuple[int, ...]:
    data = b""
    while len(data) < FEEDBACK.size:
        part = client.recv(FEEDBACK.size - len(data))
        assert part, "the robot has closed the connection"
        data += part
    return FEEDBACK.unpack(data)


def test_a_record_is_done_when_the_robot_is_there(client: socket.socket) -> None:
    client.sendall(RECORD.pack(1, 0, 200, 0, 0, 0, 0, 0, 100, 0, X_AND_F))
    while (done := feedback(client)[0]) != 1:
        assert done < 1


@pytest.mark.parametrize("program", sorted((HERE / "programs").iterdir()), ids=str)
def test_the_program_passes_its_check(program: Path) -> None:
    report = understudy.validate(program, HERE / "cell.yaml")
    assert report.passed, report.violations
