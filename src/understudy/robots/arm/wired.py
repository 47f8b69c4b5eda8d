"""An arm behind a grblHAL wire: X Y Z A B C are its joints in degrees."""

from collections.abc import Callable, Mapping

from understudy.errors import Refused
from understudy.robots.arm.drives import Arm, Drives
from understudy.robots.grblhal.firmware import Firmware, Plant
from understudy.robots.grblhal.firmware.plant import Figures
from understudy.robots.grblhal.machine.settings import KNOWN, NOT_AVAILABLE, Settings
from understudy.simulation.program.options import ProgramHooks
from understudy.simulation.program.runner import Runner
from understudy.units import DEG, MINUTE

WIRE_LINES = 1 << 40
"""Lines over the wire are numbered from here on, so that no other line has their number."""
CHANGEABLE = (1, 10, 30, 31, 39, 62, 392, 393, 481, 484)
"""The rest is the arm itself: its limits are its model's."""


def firmware_of(arm: Arm, drives: Drives, energize: Callable[[int], None]) -> Firmware:
    plant = Plant(
        unit=DEG,
        defaults=figures(arm),
        change=_changed,
        jogged=drives.jogging,
        where=lambda now: drives.motion(now).position,
        brake=drives.stop_jog,
        halt=drives.halt,
        switch=drives.hooks.switch,
        energize=energize,
        first_line=WIRE_LINES,
    )

    def attended(hooks: ProgramHooks) -> Runner:
        drives.hooks.wire = hooks
        return drives.runner

    firmware = Firmware(plant, attended)
    drives.override = firmware.knobs.override
    return firmware


def figures(arm: Arm) -> Mapping[int, float]:
    """The arm in grblHAL's settings: soft limits are on, homing needs no switches."""
    chain, limits = arm.movers[0].chain, arm.movers[0].limits
    own = {11: arm.options.deviation / DEG, 20: 1.0, 22: 1.0, 398: float(arm.window)}
    for axis in range(len(arm.start)):
        own[110 + axis] = limits.velocity[axis] / DEG * MINUTE
        own[120 + axis] = limits.acceleration[axis] / DEG
        own[130 + axis] = (chain.upper[axis] - chain.lower[axis]) / DEG
    return {number: known.default for number, known in KNOWN.items()} | own


def _changed(figures: Figures, number: int, text: str) -> Figures | Refused:
    changed = Settings(dict(figures)).changed(number, text)
    if isinstance(changed, Refused):
        return changed
    if number not in CHANGEABLE:
        return Refused(f"${number} belongs to the arm's model", NOT_AVAILABLE)
    return dict(changed.given)
