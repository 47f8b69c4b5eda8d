"""The pins of a real grblHAL: the wire tells only of those that somebody asked about.

Inputs are what M66 read last, outputs what lines that the controller has taken set them to.
"""

import math
from collections.abc import Mapping

from understudy.errors import Refused, unknown
from understudy.gcode import GRBLHAL_ARM, Block, parse
from understudy.ports import AnalogIO, DigitalIO
from understudy.robots.grblhal.driver.words import decimal

MOST_PINS = 256
DIGITAL_OUT, ANALOG_IN, ANALOG_OUT = 1, 2, 3
"""Where `[AUX IO:…]` counts them."""


class Pins:
    """Names stand for numbers of outputs."""

    def __init__(self, digital_names: Mapping[str, int], analog_names: Mapping[str, int]) -> None:
        self._digital_names, self._analog_names = digital_names, analog_names
        self.counts: tuple[int, ...] = ()
        self.result = 0.0
        """What the last M66 read; -1 when its time was over."""
        self._read: tuple[float | None, int] | None = None
        self._inputs = self._outputs = 0
        self._volts_in: dict[int, float] = {}
        self._volts_out: dict[int, float] = {}

    def digital(self) -> DigitalIO:
        return DigitalIO(self._inputs, self._outputs)

    def analog(self) -> AnalogIO:
        inputs = range(self._count(ANALOG_IN, 0))
        outputs = range(self._count(ANALOG_OUT, 0))
        return AnalogIO(
            tuple(self._volts_in.get(channel, 0.0) for channel in inputs),
            tuple(self._volts_out.get(channel, 0.0) for channel in outputs),
        )

    # ── lines that set them ──

    def set_digital(self, pin: int | str, value: bool) -> str | Refused:
        number = self._number(pin, self._digital_names, DIGITAL_OUT)
        return number if isinstance(number, Refused) else f"M{64 if value else 65}P{number}"

    def set_analog(self, channel: int | str, value: float) -> str | Refused:
        number = self._number(channel, self._analog_names, ANALOG_OUT)
        if isinstance(number, Refused):
            return number
        if not math.isfinite(value):
            return Refused(f"{value} is no voltage")
        return f"M68E{number}Q{decimal(value)}"

    def _number(self, pin: int | str, names: Mapping[str, int], kind: int) -> int | Refused:
        number = names.get(pin) if isinstance(pin, str) else pin
        count = self._count(kind, MOST_PINS)
        if number is None:
            return Refused(str(unknown("output", str(pin), names)))
        if not 0 <= number < count:
            return Refused(f"there is no output {number}; there are 0…{count - 1}")
        return number

    def _count(self, kind: int, unknown: int) -> int:
        return self.counts[kind] if len(self.counts) > kind else unknown

    # ── what is heard of them ──

    def note_line(self, line: str) -> None:
        """A line was taken."""
        block = parse(line, GRBLHAL_ARM) if "M6" in line.upper() else None
        if not isinstance(block, Block):
            return
        name, values = block.commands.get("io"), block.values
        pin = int(values.get("E" if name in ("M67", "M68") else "P", 0))
        if not 0 <= pin < MOST_PINS:
            return
        if name in ("M62", "M64"):
            self._outputs |= 1 << pin
        elif name in ("M63", "M65"):
            self._outputs &= ~(1 << pin)
        elif name in ("M67", "M68"):
            self._volts_out[pin] = values.get("Q", 0.0)
        elif name == "M66":
            self._read = values.get("E"), pin

    def note_input(self, value: float) -> None:
        """What the M66 that was taken last has read."""
        self.result = value
        read, self._read = self._read, None
        if read is None or value < 0:
            return
        channel, pin = read
        if channel is not None and 0 <= channel < MOST_PINS:
            self._volts_in[int(channel)] = value
        elif channel is None:
            self._inputs = self._inputs | 1 << pin if value else self._inputs & ~(1 << pin)
