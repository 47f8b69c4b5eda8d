"""A working session: home, jog, stream a program with hold, override and M6, reset, unlock."""

import math
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from tests.robots.grblhal.senders import bcnc, cncjs
from tests.robots.grblhal.senders.machine import Machine, machine
from tests.robots.grblhal.senders.processes import wait_until
from tests.robots.grblhal.senders.sender import Sender

from understudy.wire.chat import Chat, parse

PATH_MM, RADIUS_MM, FEED = 250.0, 10.0, 1000
OVERRIDE = 110
HOMED = (-1.0, -1.0, -1.0)
"""$27 below the limit switches of the shipped machine."""
PROGRAM_S = 300.0
MOVE_S = 60.0


class Connect(Protocol):
    """Installs a sender in a folder and connects it to a machine."""

    def __call__(self, folder: Path, machine: Machine, /) -> AbstractContextManager[Sender]: ...


SENDERS: dict[str, Connect] = {"cncjs": cncjs.connected, "bcnc": bcnc.connected}


def program_lines(count: int) -> list[str]:
    """A program of ``count`` lines: chords of a circle, a change of the tool half-way."""
    before = ["G21 G90 G94 G17 G54", "M3 S800", f"G1 X0 Y0 F{FEED}"]
    after = ["M5", "G0 X0 Y0", "M30"]
    chords = count - len(before) - len(after) - 1
    moves = []
    for number in range(1, chords + 1):
        angle = number * PATH_MM / chords / RADIUS_MM
        x, y = RADIUS_MM * (1 - math.cos(angle)), RADIUS_MM * math.sin(angle)
        moves.append(f"X{-x:.3f} Y{-y:.3f}")
    return [*before, *moves[: chords // 2], "T1 M6", *moves[chords // 2 :], *after]


def record(connect: Connect, folder: Path, count: int) -> Chat:
    """Installs a sender, does a session with a program of ``count`` lines; its transcript."""
    program = folder / "program.nc"
    program.write_text("\n".join(program_lines(count)) + "\n")
    with machine(folder) as served, connect(folder, served) as sender:
        work(sender, program)
    return parse(served.transcript.read_text(), served.transcript.name)


def work(sender: Sender, program: Path) -> None:
    """The session; the sender's own display says whether each step has worked."""
    sender.unlock()
    sender.home()
    wait_until(lambda: sender.shown().position == HOMED, "the machine is homed", MOVE_S)
    _until(sender, "Idle", MOVE_S)
    for move in ("X-30", "Y-30"):
        _jog(sender, move)
    sender.zero()
    wait_until(lambda: _near(sender, 0.0, 0.0), "the work offset is shown")
    assert sender.errors() == []
    _stream(sender, program)
    _reset(sender)


def _jog(sender: Sender, move: str) -> None:
    axis, distance = "XYZ".index(move[0]), float(move[1:])
    from_ = sender.shown().position[axis]
    sender.jog(move)
    wait_until(
        lambda: abs(sender.shown().position[axis] - from_ - distance) < 0.002, f"jog {move}", MOVE_S
    )
    _until(sender, "Idle", MOVE_S)


def _stream(sender: Sender, program: Path) -> None:
    sender.load(program)
    sender.start()
    _until(sender, "Run", MOVE_S)
    wait_until(lambda: not _near(sender, 0.0, 0.0, 1.0), "the program is on its way", MOVE_S)
    sender.hold()
    _until(sender, "Hold:0", MOVE_S)
    held = sender.shown().position
    sender.resume()
    _until(sender, "Run", MOVE_S)
    wait_until(lambda: sender.shown().position != held, "the program goes on", MOVE_S)
    sender.override_feed(OVERRIDE)
    wait_until(lambda: sender.shown().feed_override == OVERRIDE, "the override is shown")
    _until(sender, "Tool", PROGRAM_S)
    sender.confirm_tool()
    wait_until(sender.finished, "the program is done", PROGRAM_S)
    _until(sender, "Idle", MOVE_S)
    wait_until(lambda: _near(sender, 0.0, 0.0), "the program has ended at its origin", MOVE_S)
    assert sender.errors() == []


def _reset(sender: Sender) -> None:
    """A reset in motion is an alarm, which is unlocked."""
    sender.jog("X-100")
    _until(sender, "Jog", MOVE_S)
    sender.reset()
    _until(sender, "Alarm", MOVE_S)
    assert any(error.startswith("ALARM:3") for error in sender.errors())
    sender.unlock()
    _until(sender, "Idle", MOVE_S)
    _jog(sender, "X5")
    assert sender.errors() == []


def _until(sender: Sender, state: str, seconds: float) -> None:
    wait_until(lambda: sender.shown().state == state, f"{sender.name} shows {state}", seconds)


def _near(sender: Sender, x: float, y: float, within: float = 0.002) -> bool:
    return math.dist(sender.shown().position[:2], (x, y)) <= within
