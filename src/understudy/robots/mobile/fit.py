"""What the messages of a mobile robot show of its drives: acceleration, deceleration, top speed.

    speed │      cruise ─────╮
          │    ╱             │╲
          │  ╱ acceleration  │ ╲ deceleration
          └─────────────────────────▶ time
        MOVE_VELOCITY      STOP

A MOVE_VELOCITY from rest, up to the middle of its cruise, is a motion with the acceleration; the
rest of it, to the next standstill, is one with the deceleration. The positions of
the drive motors in `robot.ID.state` are compared with them. When the client sent STOP does not
matter, since both motions have an unknown begin.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from understudy.config import CellConfig
from understudy.errors import ConfigError
from understudy.motion.path import Floats
from understudy.offline.fit import Keys, Measured, Parameter, Recorded, Reports
from understudy.units import seconds
from understudy.wire.chat import Chat

STILL = 1e-3
"""m/s of all drive motors below which a robot stands."""
FEWEST_REPORTS = 4
AT_SPEED, FEWEST_AT_SPEED = 0.99, 3
"""Share of its top speed from which on a drive cruises, and the states that show it."""
BEYOND = 1.02
"""A commanded speed is limited by the robot if it is larger than the driven one by this factor."""


class State(NamedTuple):
    """Positions and speeds of the drive motors, in m and m/s."""

    at: float
    position: Floats
    speed: float


class Drive(NamedTuple):
    """A command and the states from rest to rest; `asked`: the commanded speed, m/s or None if it
    turns. `middle`: of the time in which it cruises."""

    sent: float
    asked: float | None
    middle: float
    states: list[State]


class Ramp(NamedTuple):
    """One ramp of a drive, from or to a place of rest. `way`: unit of the fastest motor."""

    rest: Floats
    way: Floats
    length: float
    speed: int
    """The number of the parameter of its cruising speed."""
    slows: bool
    begins: float
    states: list[State]


class RampMotion:
    """`Motion`: a ramp with a length of cruising before or behind it."""

    def __init__(self, ramp: Ramp, rate: float, speed: float) -> None:
        self._ramp, self._rate, self._speed = ramp, rate, speed
        self._takes = speed / rate
        cruise = max(ramp.length / speed - 0.5 * self._takes, 0.0)
        self.duration = self._takes + cruise

    def positions(self, times: Floats) -> Floats:
        t = np.clip(times, 0.0, self.duration)
        t = self.duration - t if self._ramp.slows else t
        ramped = np.minimum(t, self._takes)
        s = 0.5 * self._rate * ramped**2 + self._speed * (t - ramped)
        sign = -1.0 if self._ramp.slows else 1.0
        return np.asarray(self._ramp.rest + sign * s[:, None] * self._ramp.way)


class DriveMotions:
    """`Motions` of a mobile robot. The parameters: acceleration, deceleration, top speed, and the
    speeds of the motions that no limit held back."""

    def __init__(
        self, drives: Sequence[Drive], known: Mapping[str, float], place: Keys, tick: float
    ) -> None:
        limited = [each for each in drives if _is_limited(each)]
        free = [each for each in drives if not _is_limited(each)]
        rates = (("maxAcceleration", "acceleration"), ("maxDeceleration", "deceleration"))
        parameters = [
            Parameter((*place, key), name, "m/s2", known[key], 1e-3, 100.0, scaled=True)
            for key, name in rates
        ]
        if limited:
            top = float(np.median([_cruise(each) for each in limited]))
            parameters.append(Parameter((*place, "maxSpeed"), "top speed", "m/s", top, 1e-3, 100.0))
        own = len(parameters)
        parameters += [Parameter((), "", "m/s", _cruise(e), 1e-3, 100.0) for e in free]
        self.parameters: Sequence[Parameter] = parameters
        self._ramps: list[Ramp] = []
        for each in drives:
            number = own - 1 if _is_limited(each) else own + free.index(each)
            self._ramps += _ramps(each, number)
        states = [state for ramp in self._ramps for state in ramp.states]
        numbers = [k for k, ramp in enumerate(self._ramps) for _ in ramp.states]
        self.begins = np.array([ramp.begins for ramp in self._ramps])
        width = len(states[0].position) if states else 0
        self.reports = Reports(
            np.array(numbers, dtype=np.int64),
            np.array([state.at for state in states]),
            np.array([state.position for state in states]).reshape(len(states), width),
            # A ramp begins and ends with a tick: its place of rest is as uncertain as this.
            np.full(width, max(known["maxAcceleration"], known["maxDeceleration"]) * tick**2),
        )
        self.starts = [(k, drives[k // 2].sent) for k in range(0, len(self._ramps), 2)]

    def planned(self, values: Sequence[float]) -> list[RampMotion]:
        return [RampMotion(r, values[1 if r.slows else 0], values[r.speed]) for r in self._ramps]


def _is_limited(drive: Drive) -> bool:
    return drive.asked is not None and drive.asked > BEYOND * _cruise(drive)


def _cruise(drive: Drive) -> float:
    return max(state.speed for state in drive.states)


def _ramps(drive: Drive, speed: int) -> list[Ramp]:
    """The two ramps of a drive, divided where it cruises."""
    first, last = drive.states[0], drive.states[-1]
    change = last.position - first.position
    way = change / np.abs(change).max()
    up, down = _halves(drive.states, drive.middle)
    middle = 0.5 * (up[-1].position + down[0].position)
    to = float(np.abs(middle - first.position).max())
    back = float(np.abs(last.position - middle).max())
    return [
        Ramp(first.position, way, to, speed, False, drive.sent, up),
        Ramp(last.position, way, back, speed, True, drive.middle, down),
    ]


# ── messages ────────────────────────────────────────────────────────────────────────────────────


def recorded_robot(config: CellConfig, robot: str, chat: Chat) -> Recorded:
    """What a recording of the messages of a mobile robot shows."""
    from understudy.robots.mobile.group import robot_of

    given = config.robots[robot].config
    file = robot_of(robot, given, config.read_file(given.file))
    drive = next((each for each in file.motors if each.role == "DRIVE"), None)
    if drive is None:
        raise ConfigError("the robot has no DRIVE motor", value=robot)
    names = [each.motor_id for each in file.motors if each.role == "DRIVE"]
    states, commands, acks = _messages(chat, robot, names)
    if not states:
        raise ConfigError(f"no robot.{robot}.state is in this recording", value=robot)
    limits = drive.limits.si
    known = {
        "maxSpeed": limits.max_speed,
        "maxAcceleration": limits.max_acceleration,
        "maxDeceleration": limits.max_deceleration,
    }
    place: Keys = ("motors", "DRIVE", "limits")
    tick = 1.0 / file.runtime.tick_hz
    motions = DriveMotions(list(_drives(states, commands)), known, place, tick)
    seen = {str(each.keys[-1]) for each in motions.parameters if each.keys}
    absent = [Parameter((*place, key), key, "", known[key]) for key in known if key not in seen]
    gaps = [b.at - a.at for a, b in pairwise(states)]
    measured = (
        Measured((), "delay of acknowledgements", "ms", [1e3 * d for d in acks], "acks"),
        Measured((), "period of states", "ms", [1e3 * gap for gap in gaps], "pauses"),
    )

    def delays(begins: Floats, ends: Floats) -> tuple[Measured, ...]:
        late = [1e3 * (float(begins[k]) - sent) for k, sent in motions.starts]
        return (Measured((), "delay from command to motion", "ms", late, "commands"),)

    return Recorded(
        motions,
        measured,
        absent=tuple(absent),
        notes=(f"the limits stand in {given.file}, at every DRIVE motor; put them there",),
        after_fit=delays,
    )


def _messages(
    chat: Chat, robot: str, motors: Sequence[str]
) -> tuple[list[State], list[tuple[float, Mapping[str, Any]]], list[float]]:
    """The states, the commands with their payloads, and the delays of their first acks."""
    states: list[State] = []
    commands: list[tuple[float, Mapping[str, Any]]] = []
    sent: dict[str, float] = {}
    delays: list[float] = []
    for event in chat.events:
        if event.address is None or not event.address[0].startswith(f"robot.{robot}."):
            continue
        at, kind = seconds(event.at), event.address[0].removeprefix(f"robot.{robot}.")
        try:
            body = json.loads(event.data)
            payload = body["payload"]
            if kind == "command.request":
                commands.append((at, payload))
                sent[str(body["messageId"])] = at
            elif kind == "command.ack" and payload["status"] == "ACKED":
                delays.append(at - sent.pop(str(body["correlationId"])))
            elif kind == "state":
                rows = [payload["motors"][name] for name in motors]
                place = np.array([float(row["position"]) for row in rows])
                states.append(State(at, place, max(abs(float(row["velocity"])) for row in rows)))
        except (ValueError, KeyError, TypeError):
            continue  # no message of this kind, or one of another version
    return states, commands, delays


def _drives(
    states: Sequence[State], commands: Sequence[tuple[float, Mapping[str, Any]]]
) -> list[Drive]:
    """The MOVE_VELOCITY commands from rest to rest."""
    found = []
    ends = [at for at, _ in commands[1:]]
    for (sent, payload), stopped in zip(commands, ends, strict=False):
        if payload.get("commandType") != "MOVE_VELOCITY":
            continue
        before = [state for state in states if state.at <= sent]
        behind = [state for state in states if state.at > sent]
        rest = next((k for k, s in enumerate(behind) if s.at > stopped and s.speed < STILL), None)
        if not before or before[-1].speed > STILL or rest is None:
            continue
        own = [before[-1], *behind[: rest + 1]]
        top = max(state.speed for state in own)
        cruising = [state.at for state in own if state.speed >= AT_SPEED * top]
        middle = 0.5 * (cruising[0] + cruising[-1])
        halves = _halves(own, middle)
        if len(cruising) < FEWEST_AT_SPEED or min(map(len, halves)) < FEWEST_REPORTS:
            continue
        parameters = payload.get("parameters") or {}
        turns = bool(parameters.get("angular"))
        asked = None if turns else abs(float(parameters.get("linear", 0.0)))
        found.append(Drive(sent, asked, middle, own))
    return found


def _halves(states: Sequence[State], middle: float) -> tuple[list[State], list[State]]:
    """The states in motion before and after a time."""
    moving = [state for state in states if state.speed > STILL]
    return [s for s in moving if s.at <= middle], [s for s in moving if s.at > middle]
