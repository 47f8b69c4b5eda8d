"""What a program does with pins: throws switches, waits for inputs and for the arc."""

from understudy.devices.io.virtual_io import VirtualIO
from understudy.errors import Refused
from understudy.gcode.requests import SetOutput, WaitInput
from understudy.simulation.program.options import Arc
from understudy.simulation.program.steps import ArcWait, State, Switch
from understudy.units import nanoseconds

TIMED_OUT = -1.0
"""What M66 reads when its time is over."""
MOTOR_FAULT = 17
ARC_OUT = ("PostFlow", "Idle", "Fault")


def throw(switch: Switch, io: VirtualIO, now: int) -> Refused | None:
    """M62 … M65, M67, M68."""
    if isinstance(switch, SetOutput):
        return io.set_digital_output(switch.pin, switch.on, now)
    return io.set_analog_output(switch.pin, switch.value, now)


def input_is_met(step: WaitInput, state: State, io: VirtualIO, now: int) -> bool:
    """M66: true when it has its result, in ``state``; false while it waits."""
    if step.kind == "analog":
        state.result = io.analog_input(step.pin, now)
        return True
    level = io.digital_input(step.pin)
    if state.waits_since is None:
        state.waits_since, state.level = now, level
    rises, falls = level and not state.level, state.level and not level
    met = {"read": True, "rise": rises, "fall": falls, "high": level, "low": not level}
    state.level = level
    if not met[step.mode] and now < state.waits_since + nanoseconds(step.timeout):
        return False
    state.result = float(level) if met[step.mode] else TIMED_OUT
    state.waits_since = None
    return True


def arc_is_met(step: ArcWait, arc: Arc | None) -> bool | Refused:
    """Motion goes on in Weld; after M5 the torch stands until the arc is out."""
    if arc is None:
        return True
    if arc.phase not in ARC_OUT:
        return step.burns and arc.phase == "Weld"
    return no_arc(arc.reason) if step.burns else True


def no_arc(reason: str, line: int = 0) -> Refused:
    """A weld fault, or an arc that somebody else has switched off; and which line was running."""
    place = f"line {line}: " if line else ""
    return Refused(f"{place}weld fault: {reason or 'the arc is off'}", MOTOR_FAULT)
