"""A robot of which nothing is known but that it can be stopped."""

from typing import Any

from understudy.errors import Refused
from understudy.ports.operation import AxisReading, Condition, Frame
from understudy.space.pose import ORIGIN

NO_BUTTON = Refused("this robot has no emergency stop")


class StopOnlyActions:
    """`OperatorActions` on any part."""

    frames: tuple[Frame, ...] = ()

    def __init__(self, part: Any) -> None:
        self._part = part

    def condition(self, now: int) -> Condition:
        state = getattr(self._part.status(now), "state", "")
        return Condition(state=str(state), moving=bool(self._part.busy()))

    def axis_reading(self, now: int) -> AxisReading:
        return AxisReading((), (), (), ORIGIN)

    def stop(self, now: int) -> Refused | None:
        return self.emergency_stop(now)

    def emergency_stop(self, now: int) -> Refused | None:
        return self._press("emergency_stop", now)

    def reset(self, now: int) -> Refused | None:
        return self._press("emergency_release", now)

    def _press(self, fault: str, now: int) -> Refused | None:
        if fault not in self._part.faults():
            return NO_BUTTON
        refused: Refused | None = self._part.inject(fault, {}, now)
        return refused
