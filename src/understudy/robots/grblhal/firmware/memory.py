"""What a firmware keeps over a reset: settings, start-up lines, offsets."""

from collections.abc import Mapping

from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode import Modal
from understudy.gcode.wire import Restored
from understudy.gcode.words import normalized
from understudy.robots.grblhal.firmware.core import NOT_IDLE, Core
from understudy.robots.grblhal.firmware.lines import FirmwareLines
from understudy.robots.grblhal.firmware.state import (
    HOMING,
    INCHES,
    SOFT_LIMITS,
    SOFT_LIMITS_NEED_HOMING,
)
from understudy.units import seconds

NEEDS_HOMING = Refused("soft limits need homing ($22)", SOFT_LIMITS_NEED_HOMING)


class FirmwareMemory:
    """`Memory`."""

    def __init__(self, core: Core, lines: FirmwareLines) -> None:
        self._core = core
        self._lines = lines

    def settings(self) -> Mapping[int, float]:
        return self._core.figures()

    def store(self, number: int, text: str, now: int) -> Refused | None:
        core = self._core
        if not core.idle(now):
            return NOT_IDLE
        changed = core.plant.change(core.figures(), number, text)
        if isinstance(changed, Refused):
            return changed
        homing = int(changed[HOMING]) & 1
        if number == SOFT_LIMITS and changed[SOFT_LIMITS] and not homing:
            return NEEDS_HOMING
        if number == HOMING and not homing:
            changed = {**changed, SOFT_LIMITS: 0.0}
        self._adopt(changed, now)
        if number == INCHES:
            core.changed(now, "offset")
        return None

    def startup(self) -> tuple[str, ...]:
        return tuple(self._core.state.startup)

    def store_startup(self, index: int, text: str, now: int) -> None:
        core = self._core
        line = normalized(text)
        if line and not core.idle(now):
            core.answer(NOT_IDLE.code, now)
        elif line:
            self._lines.store_startup(index, line, now)
        else:
            core.state.startup = ["" if n == index else s for n, s in enumerate(self.startup())]
            core.answer(0, now)

    def restore(self, what: Restored, now: int) -> Refused | None:
        core, state = self._core, self._core.state
        if core.condition(now) not in ("Idle", "Alarm"):
            return NOT_IDLE
        if what in ("settings", "all"):
            self._adopt(core.plant.defaults, now)
        if what in ("parameters", "all"):
            blank = Modal()
            core.runner.state.modal = replace(
                core.runner.state.modal,
                offsets=blank.offsets,
                g92=blank.g92,
                g92_kept=blank.g92_kept,
                g28=blank.g28,
                g30=blank.g30,
            )
        if what == "all":
            state.startup, state.label = ["", ""], ""
        core.news("restored", now)
        return None

    def label(self, text: str | None = None) -> str:
        if text is not None:
            self._core.state.label = text
        return self._core.state.label

    def _adopt(self, figures: Mapping[int, float], now: int) -> None:
        core = self._core
        defaults = core.plant.defaults
        core.state.settings = [(n, v) for n, v in figures.items() if defaults[n] != v]
        if core.plant.build is not None:
            here = core.runner.queue.end
            core.runner.adopt(*core.plant.build(core.figures(), here, seconds(now)))
            core.set_pace(now)
