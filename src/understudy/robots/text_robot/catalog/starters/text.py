"""Tests of a client of the text robot: replace `Client` by yours."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import understudy
from understudy import StandIn

HERE = Path(__file__).parent
pytestmark = pytest.mark.understudy(cell=str(HERE / "cell.yaml"))


class Client:
    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=10)
        self._lines = self._socket.makefile("rwb", buffering=0)

    def ask(self, line: str) -> str:
        self._lines.write(f"{line}\n".encode())
        return self._lines.readline().decode().strip()

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@pytest.fixture
def client(text_robot: StandIn) -> Iterator[Client]:
    client = Client(text_robot.host, text_robot.port)
    yield client
    client.close()


def test_a_move_is_answered_when_it_has_ended(client: Client, text_robot: StandIn) -> None:
    assert client.ask("MOVE_ABS 300,100,150,0,0,90").startswith("OK")
    assert text_robot.now > 0.0  # simulated seconds; the test itself did not wait


@pytest.mark.understudy(cell=str(HERE / "cell.yaml"), refusals=True)
def test_the_client_sees_an_emergency_stop(client: Client, text_robot: StandIn) -> None:
    text_robot.inject("emergency_stop")
    assert client.ask("MOVE_ABS 300,100,150,0,0,90").startswith("ERROR")


@pytest.mark.parametrize("program", sorted((HERE / "programs").iterdir()), ids=str)
def test_the_program_passes_its_check(program: Path) -> None:
    report = understudy.validate(program, HERE / "cell.yaml")
    assert report.passed, report.violations
