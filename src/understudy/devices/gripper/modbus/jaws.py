"""The part between the fingers of a servo gripper, as the parts of the cell have it."""

from understudy.devices.gripper import Config
from understudy.devices.gripper.contact import STANDARD_GRAVITY, span_along
from understudy.devices.gripper.grasp import Grasp
from understudy.ports.device import Mount
from understudy.ports.workpieces import WorkpieceReading
from understudy.units import MM


class PartJaws:
    """`Jaws`: the tool point is in the middle between the finger pads."""

    def __init__(self, name: str, config: Config, mount: Mount) -> None:
        self._name = name
        self._fingers = config.fingers
        self._grasp = Grasp(mount)
        self._fault_source = mount.fault_source

    def width(self, opening: float, now: int) -> float | None:
        found = self._between(opening, now)
        return None if found is None else found[1]

    def take(self, opening: float, force: float, now: int) -> bool:
        """The part is held if the friction at both fingers carries its weight."""
        found = self._between(opening, now)
        if self.holds() or found is None:
            return self.holds()
        part = found[0]
        if self._fault_source.draw_fault("grip_miss", self._name, now) is not None:
            return False
        if 2.0 * self._fingers.friction * force < part.mass * STANDARD_GRAVITY:
            return False
        self._grasp.take(part.name, now)
        return True

    def let_go(self, now: int) -> None:
        self._grasp.let_go(now)

    def holds(self) -> bool:
        return bool(self._grasp.held())

    def _between(self, opening: float, now: int) -> tuple[WorkpieceReading, float] | None:
        """The part that fits between fingers with this opening, and its width."""
        axis, tool = self._fingers.axis, self._grasp.tool(now)
        if tool is None:
            return None
        width, height = (size * MM for size in self._fingers.pad_mm)
        region = (opening, width, height) if axis == "x" else (width, opening, height)
        for part in self._grasp.found(region, now):
            span = span_along(tool, part, axis)
            if span.fits(opening):
                return part, span.width
        return None
