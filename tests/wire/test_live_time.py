"""Time in a live cell: rate 0, step, max and numeric rates; packet boundaries change nothing."""

import asyncio
import socket
import struct
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from understudy.agenda import ClockState, Rate
from understudy.app import live as live_cell
from understudy.app.build import build_cell
from understudy.app.live import Live, Options
from understudy.app.stand_in import StandIn
from understudy.config import load_config
from understudy.config.cell import read_config
from understudy.wire.chat import write
from understudy.wire.connection import Event
from understudy.wire.exchange import Exchange
from understudy.wire.pump import Pump

PATIENCE = 60.0


def cell(rate: Rate, *, rules: bool = False) -> StandIn:
    return StandIn("text_robot", seed=5, rules=rules, rate=rate)


@pytest.fixture
def stepped() -> Iterator[StandIn]:
    with cell("step") as robot:
        yield robot


def _break_off(line: socket.socket) -> None:
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.close()


def _wait_for(robot: StandIn, *, state: str, clients: int) -> None:
    """Waits until the robot has received the data: that takes wall time, not simulated time."""
    parts = {}
    for _ in range(100_000):
        parts = robot.do("status")["parts"]
        if (parts["bench"].state, parts["bench.text_tcp"]["clients"]) == (state, clients):
            return
    raise TimeoutError(str(parts))


# ── step ──


def test_in_step_time_runs_only_while_an_answer_is_owed(stepped: StandIn) -> None:
    assert stepped.ask("GET_POS").startswith("OK 0.00,")
    assert stepped.now == 0.0
    assert stepped.ask("MOVE_ABS 1,2,3,0,0,0") == "OK Movement completed"
    assert stepped.now == 0.5
    assert stepped.ask("HOME") == "OK Homing completed"
    assert stepped.now == 1.5
    stepped.forward(3.0)
    assert stepped.now == 4.5
    assert stepped.ask("GET_STATUS").startswith("OK Idle,")
    assert stepped.now == 4.5


@pytest.mark.parametrize("size", [1, 11, 1000], ids=["bytes", "lines", "one packet"])
def test_in_step_each_poll_advances_time_by_10_ms_while_the_robot_moves(size: int) -> None:
    """The client of the motion has disconnected. Packet boundaries of the polls do not matter."""
    with cell(0.0) as robot, socket.create_connection(robot.address(), PATIENCE) as poller:
        mover = socket.create_connection(robot.address(), PATIENCE)
        mover.sendall(b"MOVE_REL 1,0,0\n")
        _wait_for(robot, state="Moving", clients=2)
        _break_off(mover)
        _wait_for(robot, state="Moving", clients=1)
        robot.do("rate", rate="step")
        polls = b"GET_STATUS\n" * 30
        for start in range(0, len(polls), size):
            poller.sendall(polls[start : start + size])
        with poller.makefile("rb") as stream:
            states = [stream.readline().split(b",")[0] for _ in range(30)]
        assert states == [b"OK Moving"] * 20 + [b"OK Idle"] * 10
        assert robot.now == pytest.approx(0.2)


SCRIPT = [
    b"GET_POS\n",
    b"MOVE_ABS 100,200,300,0,0,90\n",
    b"GET_POS\n",
    b"get_status\r\n",
    b"HOME\n",
    b"BOGUS 1,2\n",
    b"MOVE_REL 1,1,1\n",
    b"MOVE_REL 1,1\n",
    b"GET_POS\n",
    b"STOP\n",
    b"MOVE_REL 1,1,1\n",
    b"RESET\n",
    b"GET_STATUS\n",
] * 3


def _answers(packets: list[bytes], name: str = "text_robot") -> tuple[bytes, float]:
    """All answers to the packets, and the simulated time at the end."""
    with (
        StandIn(name, seed=5, rules=True, rate="step") as robot,
        socket.create_connection(robot.address(), PATIENCE) as line,
    ):
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for packet in packets:
            line.sendall(packet)
        line.shutdown(socket.SHUT_WR)
        data = b""
        while piece := line.recv(1 << 16):
            data += piece
        return data, robot.now


def test_in_step_packet_boundaries_change_no_answer() -> None:
    script = [line for line in SCRIPT if not line.startswith(b"STOP")]
    stream = b"".join(script)
    one_packet = _answers([stream])
    assert one_packet[0].count(b"\n") == len(script)
    assert _answers(script) == one_packet
    assert _answers([stream[n : n + 1] for n in range(len(stream))]) == one_packet


FIRMWARE = [
    b"G21G90\n", b"G1X5Y2F600\n", b"?", b"G1 X10 (really?)\n", b"?", b"G1X1?2F\x91900\n", b"!",
    b"?", b"?", b"~", b"G4P0.2\n", b"?\n", b"$G\n", b"$J=X3F100\r\n", b"X?\r\n", b"\x85", b"?",
    b"G1X0\n", b"\n", b"M3S\x80100\n", b"(MSG, ~ over)\n", b"\x87", b"G0Y0\n",
]  # fmt: skip


def test_in_step_packet_boundaries_change_no_answer_of_grblhal() -> None:
    """The characters of a line are received together (`SilentBytes`)."""
    stream = b"".join(FIRMWARE)
    whole = _answers([stream], "grblhal_6axis")
    assert whole[0].count(b"MPos:") > 8
    assert _answers(FIRMWARE, "grblhal_6axis") == whole
    assert _answers([stream[n : n + 1] for n in range(len(stream))], "grblhal_6axis") == whole
    assert _answers([stream[n : n + 3] for n in range(0, len(stream), 3)], "grblhal_6axis") == whole


async def _session(size: int) -> str:
    """Runs a lock-step client over a socket; returns the digest of the transcript."""
    events: list[Event] = []
    config = load_config("text_robot", seed=11)
    live = Live(config, Options(rate="step", ephemeral=True, note=events.append))
    await live.start()
    host, _, port = live.endpoints["bench.text_tcp"].removeprefix("tcp://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for command in SCRIPT[:size]:
        writer.write(command)
        await reader.readline()
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    await live.stop()
    return sha256(write({}, events).encode()).hexdigest()


async def _digests(sessions: int) -> set[str]:
    return {await _session(len(SCRIPT)) for _ in range(sessions)}


def test_fifty_equal_sessions_give_the_same_transcript() -> None:
    assert len(asyncio.run(_digests(50))) == 1


@pytest.mark.soak
def test_a_thousand_equal_sessions_give_the_same_transcript() -> None:
    assert len(asyncio.run(_digests(1000))) == 1


def test_a_different_session_gives_a_different_transcript() -> None:
    assert asyncio.run(_session(5)) != asyncio.run(_session(6))


# ── max, rates, pause ──


def test_at_max_time_runs_during_motions() -> None:
    with cell("max") as robot:
        for _ in range(50):
            assert robot.ask("HOME") == "OK Homing completed"
        assert robot.now >= 50.0


def test_at_max_time_runs_during_motions_of_disconnected_clients(tmp_path: Path) -> None:
    file = tmp_path / "slow.yaml"
    file.write_text("robots: {bench: {kind: text_robot, home_ms: 3600000, faces: {text_tcp: {}}}}")
    with StandIn(str(file), rate=0.0) as robot:
        line = socket.create_connection(robot.address(), PATIENCE)
        line.sendall(b"HOME\n")
        _wait_for(robot, state="Homing", clients=1)
        _break_off(line)
        _wait_for(robot, state="Homing", clients=0)
        robot.do("rate", rate="max")
        _wait_for(robot, state="Idle", clients=0)
        assert robot.now >= 3600.0


class Wall:
    """A wall clock that the test sets."""

    now = 0

    def __call__(self) -> int:
        return self.now


def test_a_change_of_rate_does_not_make_time_jump() -> None:
    async def run() -> list[float]:
        wall = Wall()
        exchange = Exchange(build_cell(load_config("text_robot")))
        state = ClockState(0.0)
        pump = Pump(exchange, state, wall=wall)
        moments = []
        rates: list[Rate] = [2.0, "step", 1.0, 0.0, "max"]
        for rate in rates:
            wall.now += 5_000_000_000
            moments.append(pump.now() / 1e9)
            state.set_rate(rate)
            moments.append(pump.now() / 1e9)
        pump.stop()
        return moments

    assert asyncio.run(run()) == [0.0, 0.0, 10.0, 10.0, 10.0, 10.0, 15.0, 15.0, 15.0, 15.0]


def test_rate_0_stops_time_and_another_rate_continues() -> None:
    with cell(0.0) as robot, socket.create_connection(robot.address(), PATIENCE) as line:
        line.sendall(b"HOME\n")
        assert robot.ask("GET_STATUS") == "OK Homing,26.0,0,60"
        assert robot.now == 0.0
        robot.do("rate", rate=1000)
        assert line.recv(100) == b"OK Homing completed\n"
        robot.do("rate", rate=0)
        stands = robot.now
        assert stands >= 1.0
        robot.ask("GET_POS")
        assert robot.now == stands


def test_at_a_rate_a_motion_takes_its_simulated_duration() -> None:
    with cell(20.0) as robot:
        for _ in range(3):
            before = robot.now
            robot.ask("HOME")
            assert robot.now >= before + 1.0


# ── end of a cell ──


async def _ends(live: Live) -> float:
    await live.start()
    await asyncio.wait_for(live.finished.wait(), PATIENCE)
    await live.stop()
    return live.now


@pytest.mark.parametrize("rate", ["max", 1e6])
def test_a_cell_ends_after_for_seconds(rate: Rate) -> None:
    async def run() -> float:
        options = Options(rate=rate, ephemeral=True, for_seconds=3600.0)
        return await _ends(Live(load_config("text_robot"), options))

    assert asyncio.run(run()) == 3600.0


@pytest.mark.parametrize("rate", ["step", 0.0])
def test_a_cell_ends_when_advance_reaches_for_seconds(rate: Rate) -> None:
    async def run() -> None:
        options = Options(rate=rate, ephemeral=True, for_seconds=5.0)
        live = Live(load_config("text_robot"), options)
        await live.start()
        live.advance(4.0)
        assert not live.finished.is_set()
        live.advance(1.0)
        await asyncio.wait_for(live.finished.wait(), PATIENCE)
        await live.stop()

    asyncio.run(run())


def test_quit_ends_the_cell() -> None:
    async def run() -> None:
        options = Options(rate=0.0, ephemeral=True, secret="s")
        live = Live(load_config("text_robot"), options)
        await live.start()
        host, _, port = live.endpoints["control"].removeprefix("tcp://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b'{"id": 1, "do": "quit", "secret": "s"}\n')
        assert await reader.readline() == b'{"id":1,"ok":true,"result":null}\n'
        await asyncio.wait_for(live.finished.wait(), PATIENCE)
        await live.stop()
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()

    asyncio.run(run())


# ── the time of day ──


@pytest.mark.parametrize(
    ("epoch", "note"), [("", False), ("epoch: 2030-01-01T00:00:00Z\n", False), ("", True)]
)
def test_simulated_time_is_the_time_of_day_when_it_begins_to_run(
    epoch: str, note: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the cell file has an epoch, or a transcript has it written down."""
    day = [1_000_000_000_000]
    monkeypatch.setattr("understudy.app.live.time.time_ns", lambda: day[0])

    async def test() -> list[int]:
        config = read_config(f"robots: {{a: {{kind: text_robot}}}}\n{epoch}", "cell.yaml")
        run = live_cell.run_of(config, 1.0)
        noted = (lambda event: None) if note else None
        live = Live(config, Options(rate=1.0, ephemeral=True, hmi=False, run=run, note=noted))
        late = [run.epoch.ns]
        day[0] += 5_000_000_000
        await live.start()
        late.append(run.epoch.ns - late[0])
        clock = live._cell.clock_state
        clock.pause()
        day[0] += 60_000_000_000
        clock.resume()
        late.append(run.epoch.ns + live._cell.now - late[0] - late[1])
        await live.stop()
        return late[1:]

    stays = bool(epoch) or note
    started, resumed = asyncio.run(test())
    assert started == (0 if stays else 5_000_000_000)
    assert (resumed == 60_000_000_000) is not stays
