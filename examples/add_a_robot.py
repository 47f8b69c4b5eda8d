"""Add a robot from outside the package: a linear axis in one file.

A package adds it by an entry point of the group `understudy.robots`, this script by `register`.
`understudy.ports.operation` lists what a kind may declare; only `Config` and `build` are required.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from understudy import registry
from understudy.app.stand_in import StandIn
from understudy.errors import Refused
from understudy.ports import Deps
from understudy.ports.faults import EMERGENCY_STOP, Faults
from understudy.ports.operation import AxisReading, Condition, Frame, Jog, ModelAxis, RobotModel
from understudy.ports.refusals import INHIBITED
from understudy.space.pose import ORIGIN
from understudy.units import MM, seconds


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    travel_mm: float = 1000.0
    speed_mm_s: float = 100.0


class Move(Struct):
    """All that a snapshot holds: a move from `start` to `end` (m), begun at `begun` (ns)."""

    start: float = 0.0
    end: float = 0.0
    begun: int = 0
    stopped: bool = False
    inhibited: bool = False


class LinearAxis:
    """`Component` of the cell, `Injectable`, `Supervised`, and its own `OperatorActions`."""

    frames: tuple[Frame, ...] = ("base",)

    def __init__(self, config: Config) -> None:
        self._travel, self._speed = config.travel_mm * MM, config.speed_mm_s * MM
        self._move = Move()

    def position(self, now: int) -> float:
        way, done = self._move.end - self._move.start, self._speed * seconds(now - self._move.begun)
        here = self._move.start + (done if way > 0.0 else -done)
        return here if done < abs(way) else self._move.end

    def next_wake(self) -> None: ...  # nothing happens at the end of a move

    def wake(self, now: int) -> None: ...

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> Condition:
        stopped, moving = self._move.stopped, self.position(now) != self._move.end
        return Condition("Stopped" if stopped else "Run" if moving else "Idle", moving)

    def save(self) -> Move:
        return self._move

    def load(self, state: Any) -> None:
        self._move = msgspec.convert(state, Move)

    def faults(self) -> Faults:
        return EMERGENCY_STOP

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        self._halt(now, stopped=fault == "emergency_stop", inhibited=self._move.inhibited)
        return None

    def _halt(self, now: int, *, stopped: bool, inhibited: bool) -> None:
        self._move = Move(here := self.position(now), here, now, stopped, inhibited)

    def inhibit_motion(self, now: int) -> None:
        self._halt(now, stopped=self._move.stopped, inhibited=True)

    def permit_motion(self, now: int) -> None:
        self._halt(now, stopped=self._move.stopped, inhibited=False)

    def fault(self, now: int) -> Refused | None:
        return Refused("emergency stop") if self._move.stopped else None

    condition = status

    def axis_reading(self, now: int) -> AxisReading:
        return AxisReading((), (), (), ORIGIN._replace(x=self.position(now)))

    def emergency_stop(self, now: int) -> Refused | None:
        return self.inject("emergency_stop", {}, now)

    stop = emergency_stop  # it has no other

    def reset(self, now: int) -> Refused | None:
        return self.inject("emergency_release", {}, now)

    def jog(self, jog: Jog, now: int) -> Refused | None:
        end = self.position(now) + (jog.step or self._travel) * (1 if jog.speed > 0 else -1)
        if self._move.inhibited:
            return INHIBITED
        if self._move.stopped or jog.axis != 0 or not 0.0 <= end <= self._travel:
            return Refused(f"axis 0 goes to 0…{self._travel / MM:g} mm, and not after a stop")
        self._move = Move(self.position(now), end, now)
        return None


def build(name: str, config: Config, deps: Deps) -> LinearAxis:
    return LinearAxis(config)


def operator_actions(robot: LinearAxis) -> LinearAxis:
    return robot


def robot_model(config: Config, robot: LinearAxis) -> RobotModel:
    return RobotModel(axes=(ModelAxis("X", "prismatic", (1.0, 0.0, 0.0)),))


registry.register("robots", "linear_axis", __name__)
file = Path(tempfile.mkdtemp()) / "rail.yaml"
file.write_text("robots: {rail: {kind: linear_axis, speed_mm_s: 200}}")
with StandIn(str(file)) as cell:
    cell.do("jog", robot="rail", frame="base", axis=0, speed=1, step=500)
    cell.forward(seconds=1)
    snapshot = cell.do("snapshot")["snapshot"]
    print(cell.do("stop", robot="rail"), cell.do("reset", robot="rail"))
    cell.do("restore", snapshot=snapshot)
    print(rail := cell.do("robots")["robots"][0])
    assert (rail["state"], rail["capabilities"][0]) == ("Run", "jog")
