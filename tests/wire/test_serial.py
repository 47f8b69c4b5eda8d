"""Serial connections, on pseudo-terminals that the tests make."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy.app.build import build_cell
from understudy.app.live import Live, Options
from understudy.cli.transcript import Transcript
from understudy.config import load_config
from understudy.errors import ConfigError
from understudy.wire.chat import parse
from understudy.wire.compare import Tolerance
from understudy.wire.dial import Device, Dial, parse_place
from understudy.wire.exchange import InProcessCell
from understudy.wire.play import play
from understudy.wire.pty import make_terminal, streams_over
from understudy.wire.record import Recorder, Terminal, parse_front

PATIENCE_S = 60.0
MACHINE = "robots: {machine: {kind: machine, faces: {grblhal: {pty: true}}}}\n"


class Talker:
    """`Caller` that connects, sends one message and keeps the received bytes."""

    def __init__(self) -> None:
        self.call: int | None = 1
        self.said = [b"hello\n"]
        self.received_data = b""
        self.events: list[str] = []
        self.news = asyncio.Event()
        self._stir: Callable[[], None] = lambda: None

    def wanted(self) -> int | None:
        return self.call

    def connected(self, now: int) -> None:
        self._note("connected")

    def receive(self, data: bytes, now: int) -> None:
        self.received_data += data
        self._note("received_data")

    def take(self, room: int) -> bytes:
        return self.said.pop() if self.said and "connected" in self.events else b""

    def lost(self, now: int, reason: str) -> None:
        self.call = None
        self._note(reason)

    def on_ready(self, listener: Callable[[], None]) -> None:
        self._stir = listener

    def again(self, number: int) -> None:
        self.call = number
        self._stir()

    def _note(self, event: str) -> None:
        self.events.append(event)
        self.news.set()
        self._stir()

    async def until(self, condition: Callable[[], bool]) -> None:
        async def wait() -> None:
            while not condition():
                await self.news.wait()
                self.news.clear()

        await asyncio.wait_for(wait(), PATIENCE_S)


class Now:
    """`Timekeeper` that acts at once."""

    def act(self, deed: Callable[[int], Any]) -> Any:
        return deed(0)


def dial(talker: Talker, path: str) -> Dial:
    made = Dial(talker, Device(path), Now())  # type: ignore[arg-type]
    made.start()
    return made


async def talk() -> Talker:
    ours, theirs = make_terminal("the test")
    talker = Talker()
    line = dial(talker, os.ttyname(theirs))
    reader, writer = await streams_over(ours)
    assert await asyncio.wait_for(reader.readline(), PATIENCE_S) == b"hello\n"
    writer.write(b"\x00\xffwelcome\r\n\x18")
    await talker.until(lambda: b"\x18" in talker.received_data)
    await line.stop()
    writer.close()
    os.close(ours)
    os.close(theirs)
    return talker


def test_bytes_pass_unchanged_in_both_directions() -> None:
    talker = asyncio.run(talk())
    assert talker.received_data == b"\x00\xffwelcome\r\n\x18"
    assert talker.events[-1] == "hung up"


async def unplug() -> tuple[Talker, str]:
    ours, theirs = make_terminal("the test")
    path = os.ttyname(theirs)
    talker = Talker()
    line = dial(talker, path)
    await talker.until(lambda: "connected" in talker.events)
    os.close(theirs)
    os.close(ours)
    await talker.until(lambda: talker.call is None)
    reported = talker.events[-1]
    talker.again(2)
    await talker.until(lambda: talker.call is None)
    await line.stop()
    return talker, reported


def test_pulling_the_cable_ends_the_call() -> None:
    talker, reported = asyncio.run(unplug())
    assert "is gone" in reported
    assert "cannot be opened" in talker.events[-1], "the device is gone"


async def share() -> list[str]:
    ours, theirs = make_terminal("the test")
    first, second = Talker(), Talker()
    lines = [dial(first, os.ttyname(theirs))]
    await first.until(lambda: "connected" in first.events)
    lines.append(dial(second, os.ttyname(theirs)))
    await second.until(lambda: bool(second.events))
    for line in lines:
        await line.stop()
    os.close(ours)
    os.close(theirs)
    return second.events


def test_a_device_that_is_in_use_cannot_be_opened() -> None:
    (reported,) = asyncio.run(share())
    assert "cannot be opened" in reported
    assert "lock" in reported


async def flood() -> int:
    """The other end does not read at first: bytes that do not fit wait and are sent later."""
    ours, theirs = make_terminal("the test")
    talker = Talker()
    talker.said = [b"x" * 100_000]
    line = dial(talker, os.ttyname(theirs))
    await talker.until(lambda: "connected" in talker.events)
    reader, writer = await streams_over(ours)
    received_data = len(await asyncio.wait_for(reader.readexactly(100_000), PATIENCE_S))
    await line.stop()
    writer.close()
    os.close(ours)
    os.close(theirs)
    return received_data


def test_bytes_that_do_not_fit_wait() -> None:
    assert asyncio.run(flood()) == 100_000


async def record(folder: Path) -> str:
    """Records a client on the recorder's terminal and a controller on another one."""
    (folder / "cell.yaml").write_text(MACHINE)
    live = Live(load_config(str(folder / "cell.yaml")), Options(rate="max", ephemeral=True))
    await live.start()
    device = parse_place(live.endpoints["machine.grblhal"])
    recorder = Recorder(parse_front(f"pty:{folder}/ttyREC"), device, face="grblhal")
    transcript = Transcript(folder / "a.chat", "--out", overwrite=False)
    reported = asyncio.Event()

    def listens(text: str) -> None:
        transcript.open()
        reported.set()

    task = asyncio.ensure_future(recorder.run(transcript.write, listens))
    await asyncio.wait_for(reported.wait(), PATIENCE_S)
    assert recorder.place == f"{folder}/ttyREC"
    terminal = os.open(recorder.place, os.O_RDWR | os.O_NOCTTY)
    reader, writer = await streams_over(terminal)
    for line in (b"$I\n", b"G1 X10 F6000\n", b"G4 P0.1\n", b"$G\n", b"M999\n"):
        writer.write(line)
        while not (await asyncio.wait_for(reader.readline(), PATIENCE_S)).startswith(
            (b"ok", b"er")
        ):
            pass
    writer.close()
    os.close(terminal)
    recorder.finished.set()
    await task
    await live.stop()
    transcript.close()
    return (folder / "a.chat").read_text()


def test_a_recording_between_terminals_is_confirmed_by_replay(tmp_path: Path) -> None:
    recorded = asyncio.run(record(tmp_path))
    assert not os.path.lexists(tmp_path / "ttyREC"), "the link to the terminal is removed"
    assert recorded.startswith("# face: grblhal\n")
    chat = parse(recorded)
    assert [event.data for event in chat.events if event.kind == "!"] == [b"open"]
    said = b"".join(event.data for event in chat.events if event.kind == ">")
    assert said == b"$I\nG1 X10 F6000\nG4 P0.1\n$G\nM999\n"
    virtual_cell = InProcessCell(build_cell(load_config(str(tmp_path / "cell.yaml"))))
    difference = play(chat, virtual_cell, tolerance=Tolerance(0.0, None))
    assert difference is None, str(difference)


def test_a_recorder_without_a_path_has_the_number_of_its_terminal() -> None:
    terminal = parse_front("pty")
    assert isinstance(terminal, Terminal)
    assert terminal.open().startswith("/dev/")
    terminal.close()


def test_a_recorder_does_not_replace_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("precious")
    terminal = parse_front(f"pty:{tmp_path}/a")
    assert isinstance(terminal, Terminal)
    with pytest.raises(ConfigError, match="not replaced"):
        terminal.open()
    assert (tmp_path / "a").read_text() == "precious"
