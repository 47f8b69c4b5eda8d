"""What a recording of a KUKA shows: periods of its frames, delay of its answers, speeds.

    command    a record, and the feedback that counts it as completed: the delay of answers
    telemetry  axes and path velocity in each period: the speeds of home and of lines

Which record a telemetry frame belongs to is its seq in flight, so the kinds of the records come
from the commands. A log of a cell has both; a recording of the telemetry alone shows its period.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

from understudy.config import CellConfig
from understudy.errors import ConfigError
from understudy.offline.fit import Keys, Measured, Recorded
from understudy.robots.kuka.assembly import model_of
from understudy.robots.kuka.frames import (
    COMMAND,
    FEEDBACK,
    TELEMETRY,
    FrameReader,
    read_command,
    read_feedback,
    read_telemetry,
)
from understudy.robots.kuka.records import BASES, HOMES, LINEAR, TOOLS, KukaReading, Record
from understudy.units import MM, seconds
from understudy.wire.chat import Chat
from understudy.wire.connection import Event

FACE = "kuka_eki"
STEADY = 2e-3
"""Share by which speeds differ that count as one."""
FEWEST_STEADY = 5
"""Frames at one speed that show the speed of a motion, and not the tip of a ramp."""
NEVER_SEEN = -2
NO_COMMANDS = "the recording has no commands: the speeds of home and of lines are not visible"
NO_TELEMETRY = "the recording has no telemetry: the speeds of home and of lines are not visible"


class Sent(NamedTuple):
    """A record, when it was sent, and whether all records before it were completed."""

    record: Record
    at: float
    idle: bool


class Feedback(NamedTuple):
    at: float
    completed: int


class Frame(NamedTuple):
    """A telemetry frame."""

    at: float
    reading: KukaReading


def recorded_robot(config: CellConfig, robot: str, chat: Chat) -> Recorded:
    """The periods, delays and speeds in a recording."""
    commands, telemetry = _sides(config, robot, chat)
    sent, feedback = _conversation(commands)
    frames = [
        Frame(at, read_telemetry(frame)) for at, frame in _frames(telemetry, "<", TELEMETRY.size)
    ]
    place: Keys = ("robots", robot)
    keys = ("scenario", "rules", "answer_delay", "parameters", "delay_ms")
    waits = _waits(sent, feedback)
    period = _period([frame.at for frame in frames])
    measured = [
        Measured((), "period of telemetry", "ms", [1e3 * gap for gap in period], "pauses"),
        Measured(
            (*place, "faces", FACE, "feedback_ms"),
            "period of feedback",
            "ms",
            [1e3 * gap for gap in _feedback_gaps(feedback)],
            "pauses",
            whole=True,
        ),
        Measured(keys, "delay of answers", "ms", [1e3 * wait for wait in waits], "answers"),
        *_speeds(config, robot, sent, frames, median(period) if period else 0.0),
    ]
    rule = {"fault": "message_delay", "on": f"{robot}.{FACE}.command"}
    return Recorded(
        measured=tuple(measured),
        rules={"answer_delay": rule} if waits else {},
        notes=() if sent and frames else (NO_TELEMETRY if sent else NO_COMMANDS,),
    )


def _sides(config: CellConfig, robot: str, chat: Chat) -> tuple[list[Event], list[Event]]:
    """The events of the commands and of the telemetry, each of the client with most of them. A
    recording of one socket has the name of the face as endpoint: the telemetry has no requests."""
    command, telemetry = (f"{robot}.{FACE}.{name}" for name in ("command", "telemetry"))
    groups: dict[tuple[str, str], list[Event]] = {}
    for event in chat.events:
        if event.kind in "<>" and event.endpoint in (command, telemetry, FACE):
            groups.setdefault((event.endpoint, event.peer), []).append(event)
    sides: dict[str, list[Event]] = {command: [], telemetry: []}
    for (endpoint, _), events in groups.items():
        side = endpoint
        if endpoint == FACE:
            side = command if any(event.kind == ">" for event in events) else telemetry
        sides[side] = max(sides[side], events, key=len)
    if not groups:
        present = sorted({event.endpoint for event in chat.events})
        raise ConfigError(
            f"nothing was said to {robot} in this recording",
            value=", ".join(present) or "no endpoint",
            allowed=f"{command}, {telemetry} or {FACE}",
        )
    return sides[command], sides[telemetry]


def _frames(events: Sequence[Event], kind: str, size: int) -> list[tuple[float, bytes]]:
    reader = FrameReader(size)
    return [
        (seconds(event.at), frame)
        for event in events
        if event.kind == kind
        for frame in reader.feed(event.data)
    ]


def _conversation(events: Sequence[Event]) -> tuple[list[Sent], list[Feedback]]:
    """The records of a client and the feedback."""
    feedback = [
        Feedback(at, read_feedback(frame)[0]) for at, frame in _frames(events, "<", FEEDBACK.size)
    ]
    found: list[Sent] = []
    last, k = NEVER_SEEN, 0
    for at, frame in _frames(events, ">", COMMAND.size):
        while k < len(feedback) and feedback[k].at <= at:
            last, k = feedback[k].completed, k + 1
        idle = not found or last == found[-1].record.seq
        found.append(Sent(read_command(frame), at, idle))
    return found, feedback


def _waits(sent: Sequence[Sent], feedback: Sequence[Feedback]) -> list[float]:
    """Seconds from a record that moves nothing, sent to an idle robot, to its feedback."""
    found = []
    for each in sent:
        if each.idle and (each.record.kind in TOOLS or each.record.kind in BASES):
            answers = (f.at for f in feedback if f.completed == each.record.seq and f.at > each.at)
            found += [at - each.at for at in (next(answers, None),) if at is not None]
    return found


def _period(times: Sequence[float]) -> list[float]:
    """The pauses between frames of which none is missing between them."""
    return _usual([b - a for a, b in pairwise(times)])


def _feedback_gaps(feedback: Sequence[Feedback]) -> list[float]:
    """The pauses between two periodic frames: those behind a completed record come in between."""
    # Whether a frame is not the first with its number.
    periodic = [(b.completed == a.completed, b.at) for a, b in pairwise(feedback)]
    return _usual([b - a for (own, a), (other, b) in pairwise(periodic) if own and other])


def _usual(gaps: Sequence[float]) -> list[float]:
    """The pauses without those that differ from most of them by half or more."""
    usual = median(gaps) if gaps else 0.0
    return [gap for gap in gaps if abs(gap - usual) < 0.5 * usual]


# ── speeds ──────────────────────────────────────────────────────────────────────────────────────


def _speeds(
    config: CellConfig, robot: str, sent: Sequence[Sent], frames: Sequence[Frame], period: float
) -> list[Measured]:
    """The speed of home, and the limit or the override of lines."""
    of: dict[int, list[Frame]] = {}
    for frame in frames:
        progress = frame.reading.progress
        if progress.under_way:
            of.setdefault(progress.in_flight, []).append(frame)
    fastest = model_of(config.robots[robot].config, config.read_file).chain.velocity
    homes, lines = [], []
    feed = 0.0
    for each in sent:
        record = each.record
        own = of.get(record.seq, [])
        if record.kind == LINEAR:
            feed = record.words.get("F", feed)
            top = _steady([frame.reading.speed for frame in own])
            if top and feed and not {"A", "B", "C"} & record.words.keys():
                lines.append((feed / MM, top / MM))
        elif record.kind in HOMES and period:
            top = _steady(_shares(own, fastest, period))
            homes += [100.0 * top] if top else []
    limits, overrides = limited_lines(lines)
    place: Keys = ("robots", robot)
    return [
        Measured((*place, "home_speed_percent"), "speed of home", "%", homes, "motions"),
        Measured((*place, "speed_limit_mm_s"), "limit of the speed", "mm/s", limits, "lines"),
        Measured((), "override of lines", "%", overrides, "lines"),
    ]


def _shares(frames: Sequence[Frame], fastest: np.ndarray, period: float) -> list[float]:
    """Between frames, the speed of the leading axis as a share of what the axis can do. The robot
    sends at a fixed period, so that the jitter of the arrival does not matter."""
    found = []
    for a, b in pairwise(frames):
        periods = max(round((b.at - a.at) / period), 1)
        moved = np.abs(np.subtract(b.reading.axes, a.reading.axes))
        found.append(float((moved / fastest).max()) / (periods * period))
    return found


def _steady(speeds: Sequence[float]) -> float:
    """The speed that a motion holds; 0 if it holds none."""
    top = max(speeds, default=0.0)
    held = [speed for speed in speeds if speed >= (1.0 - STEADY) * top]
    return median(held) if top > 0.0 and len(held) >= FEWEST_STEADY else 0.0


def limited_lines(lines: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Speeds of lines that a limit cut off, and shares (%) of the programmed speed if all lines
    have the same one, from programmed and held speeds."""
    shares = [100.0 * held / feed for feed, held in lines]
    if len({feed for feed, _ in lines}) > 1 and max(shares) - min(shares) < STEADY * max(shares):
        return [], shares
    top = max((held for _, held in lines), default=0.0)
    cut = [(f, held) for f, held in lines if held < (1.0 - STEADY) * f]
    one = all(abs(held - top) < STEADY * top for _, held in cut)
    known = len({feed for feed, _ in cut}) > 1 or len(cut) < len(lines)
    return [held for _, held in cut] if one and known else [], []
