"""An arm behind a grblHAL wire: X Y Z A B C are its joints in degrees."""

from collections.abc import Callable, Mapping

from understudy.errors import Refused
from understudy.robots.arm.drives import Arm, Drives
from understudy.robots.grblhal.firmware import ControlledAxes, Firmware, SettingValues
from understudy.robots.grblhal.numbers import ErrorCode, SettingNumber
from understudy.robots.grblhal.settings import DEFAULTS, Settings
from understudy.simulation.program.runner import Runner
from understudy.simulation.program.steps import ProgramHooks
from understudy.units import DEG, MINUTE

WIRE_LINES = 1 << 40
"""Lines over the wire are numbered from here on, so that no other line has their number."""
CHANGEABLE = (1, 10, 30, 31, 39, 62, 392, 393, 481, 484)
"""The rest is the arm itself: its limits are its model's."""


def firmware_of(arm: Arm, drives: Drives, energize: Callable[[int], None]) -> Firmware:
    axes = ControlledAxes(
        unit=DEG,
        defaults=setting_values(arm),
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

    firmware = Firmware(axes, attended)
    drives.override = firmware.switches.override
    return firmware


def setting_values(arm: Arm) -> Mapping[int, float]:
    """The arm in grblHAL's settings: soft limits are on, homing needs no switches."""
    chain, limits = arm.movers[0].chain, arm.movers[0].limits
    own = {
        SettingNumber.JUNCTION_DEVIATION: arm.options.deviation / DEG,
        SettingNumber.SOFT_LIMITS: 1.0,
        SettingNumber.HOMING_CYCLE: 1.0,
        SettingNumber.PLANNER_BLOCKS: float(arm.window),
    }
    for axis in range(len(arm.start)):
        own[SettingNumber.MAXIMUM_RATE + axis] = limits.velocity[axis] / DEG * MINUTE
        own[SettingNumber.ACCELERATION + axis] = limits.acceleration[axis] / DEG
        own[SettingNumber.TRAVEL + axis] = (chain.upper[axis] - chain.lower[axis]) / DEG
    return {**DEFAULTS, **own}


def _changed(values: SettingValues, number: int, text: str) -> SettingValues | Refused:
    changed = Settings(dict(values)).changed(number, text)
    if isinstance(changed, Refused):
        return changed
    if number not in CHANGEABLE:
        return Refused(f"${number} belongs to the arm's model", ErrorCode.SETTING_NOT_AVAILABLE)
    return dict(changed.given)
