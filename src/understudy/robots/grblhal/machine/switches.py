"""Limit switches of a machine.

Positions are those of the machine: the coordinates that the axes have after homing.
"""

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.errors import ConfigError
from understudy.gcode.dialect import Axes
from understudy.motion.path import Floats
from understudy.ports.faults import Fault, Faults, Figure

AxisLetter = Literal["X", "Y", "Z", "A", "B", "C"]
EDGE = 1e-6
"""Tolerance of a switch in mm or deg."""


class SwitchConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The limit switches of an axis: where they are, in mm or deg. Both are wired to the limit
    input of the axis.

    `normally_closed`: the input is on while no switch is pressed; $5 has to have the bit of the
    axis.
    """

    min: float | None = None
    max: float | None = None
    normally_closed: bool = False


class SwitchFaults(Struct, frozen=True):
    """Masks of the axes whose switch is `stuck`, as if always pressed, or `dead`: never pressed."""

    stuck: int = 0
    dead: int = 0


_AXIS = {"axis": Figure(0.0, 0.0, 5.0)}
SENSOR_FAULTS: Faults = {
    "limit_switch_stuck": Fault("brought", "a limit switch stays pressed; axis 0 … 5", _AXIS),
    "limit_switch_dead": Fault("brought", "a limit switch is never pressed; axis 0 … 5", _AXIS),
    "probe_dead": Fault("brought", "the probe touches nothing"),
    "probe_stuck": Fault("brought", "the probe is on, as if it always touched"),
    "sensors_repaired": Fault("brought", "limit switches and probe work again"),
}


class LimitSwitches:
    """The limit inputs as functions of the position."""

    def __init__(self, config: Mapping[AxisLetter, SwitchConfig]) -> None:
        rows = [config.get(letter, SwitchConfig()) for letter in get_args(AxisLetter)]
        self._low = np.array([-np.inf if row.min is None else row.min for row in rows])
        self._high = np.array([np.inf if row.max is None else row.max for row in rows])
        self._closed = _mask(np.array([row.normally_closed for row in rows]))
        self.faults = SwitchFaults()

    def fail(self, fault: str, axis: int) -> None:
        """Let the switches of an axis be stuck or dead."""
        bit, faults = 1 << axis, self.faults
        if fault == "limit_switch_stuck":
            self.faults = SwitchFaults(faults.stuck | bit, faults.dead & ~bit)
        else:
            self.faults = SwitchFaults(faults.stuck & ~bit, faults.dead | bit)

    def levels(self, position: Floats) -> int:
        """Levels of the limit inputs, one bit for each axis."""
        pressed = _mask((position <= self._low + EDGE) | (position >= self._high - EDGE))
        return (pressed | self.faults.stuck) & ~self.faults.dead ^ self._closed

    def edges(self, axis: int) -> tuple[float, ...]:
        """Positions of an axis at which its input changes."""
        both = (float(self._low[axis]), float(self._high[axis]))
        return tuple(edge for edge in both if np.isfinite(edge))


def check_switches(config: Mapping[AxisLetter, SwitchConfig]) -> None:
    """Refuse a row without a switch, and switches that leave an axis no room."""
    for letter, row in config.items():
        if row.min is None and row.max is None:
            raise ConfigError(
                "the axis has no switch",
                key=f"limit_switches.{letter}",
                allowed="min, max or both; leave the axis out if it has none",
            )
        if row.min is not None and row.max is not None and not row.min < row.max:
            raise ConfigError(
                "the switches leave the axis no room",
                key=f"limit_switches.{letter}",
                value=f"min {row.min:g}, max {row.max:g}",
                allowed="min below max",
            )


def axes_of(values: Mapping[AxisLetter, float]) -> Axes:
    """Values of the six axes; 0 where none is given."""
    x, y, z, a, b, c = (float(values.get(letter, 0.0)) for letter in get_args(AxisLetter))
    return x, y, z, a, b, c


def _mask(flags: NDArray[np.bool_]) -> int:
    return int(flags.astype(np.int64) @ (1 << np.arange(len(flags))))
