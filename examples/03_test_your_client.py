"""Your own client under test: run with `pytest examples/03_test_your_client.py`."""

import socket
from collections.abc import Iterator

import pytest

from understudy.app.stand_in import StandIn


class MyClient:
    """The code you want to test."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=3)

    def home(self) -> bool:
        self._socket.sendall(b"HOME\n")
        return self._socket.recv(100).startswith(b"OK")

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def client(text_robot: StandIn) -> Iterator[MyClient]:
    client = MyClient(text_robot.host, text_robot.port)
    yield client
    client.close()


def test_homing_takes_one_second_of_simulated_time(text_robot: StandIn, client: MyClient) -> None:
    assert client.home()
    assert text_robot.now == 1.0
    text_robot.received("HOME", times=1)


def test_homing_fails_in_emergency_stop(text_robot: StandIn, client: MyClient) -> None:
    text_robot.inject("emergency_stop")
    assert not client.home()
