"""The condition of a firmware: one table of transitions, (condition, event) → condition.

The condition is what a status report shows before its first `|`, with two additions: `Critical` and
`EStop` are reported as Alarm, and a firmware that sleeps keeps an earlier alarm.
Some conditions are stored. The others (`SAMPLED`) are read from the program when they are needed:
it moves, is held, homes or waits for a tool. For them the table has the events `move` and `rest`,
which the motion causes.

`docs/robots/grblhal.md` shows the diagram that `diagram` prints.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

Condition = Literal[
    "Idle",
    "Run",
    "Jog",
    "Jog:Held",
    "Jog:Stuck",
    "Home",
    "Hold:0",
    "Hold:1",
    "Tool",
    "Door:0",
    "Door:2",
    "Door:4",
    "Check",
    "Alarm",
    "Critical",
    "EStop",
    "Inhibited",
    "Sleep",
    "Sleep:Alarm",
    "Sleep:EStop",
]
"""`Hold:1` and `Door:2`: the axes still brake. `Door:4`: spindle and coolant start again.
`Jog:Held`: the door was opened in a jog, which waits for `~` without being reported as Door; opened
once more, it is `Jog:Stuck`, and only a stop or a reset helps.
`Critical`: only a reset is accepted. `EStop`: the emergency stop or a motor fault is active, and a
reset has no effect. `Inhibited`: the cell is stopped; motion is refused until it starts again."""

Event = Literal[
    "move",
    "jog",
    "home",
    "hold",
    "start",
    "door",
    "restored",
    "tool change",
    "rest",
    "check",
    "sleep",
    "unlock",
    "stop",
    "reset",
    "reset in motion",
    "alarm",
    "critical alarm",
    "emergency stop",
    "release",
    "inhibit",
    "permit",
]
"""`start` is cycle start (`~`). `restored`: spindle and coolant run again after the door was
closed. `stop` (0x19) takes effect once the axes are at rest. `release`: the emergency stop is
released. `inhibit`, `permit`: the cell stops and starts."""

MOVING_STATES: tuple[Condition, ...] = ("Idle", "Run", "Jog", "Home", "Hold:0", "Hold:1", "Tool")
"""Conditions that follow from the program and its motion."""
SAMPLED: tuple[Condition, ...] = (*MOVING_STATES, "Inhibited")
"""Conditions that are stored as `Idle`; `Inhibited` follows from the state of the cell."""
DOOR: tuple[Condition, ...] = ("Door:0", "Door:2", "Door:4")
HELD_JOG: tuple[Condition, ...] = ("Jog:Held", "Jog:Stuck")
ALARM: tuple[Condition, ...] = ("Alarm", "Critical", "EStop", "Inhibited")
SLEEP: tuple[Condition, ...] = ("Sleep", "Sleep:Alarm", "Sleep:EStop")
LOCKED: tuple[Condition, ...] = (*ALARM, "Sleep:Alarm", "Sleep:EStop")
"""An alarm is active."""
CRITICAL: tuple[Condition, ...] = ("Critical", "EStop", "Sleep:EStop", "Inhibited")
"""Only a reset is accepted."""
STOPPED: tuple[Condition, ...] = ("EStop", "Sleep:EStop")
"""The emergency stop or a motor fault is active."""
AT_WORK: tuple[Condition, ...] = (*MOVING_STATES, *DOOR, *HELD_JOG, "Check")


def _from(
    conditions: Iterable[Condition], event: Event, to: Condition
) -> dict[tuple[Condition, Event], Condition]:
    return {(condition, event): to for condition in conditions}


TRANSITIONS: Mapping[tuple[Condition, Event], Condition] = {
    # motion
    ("Idle", "move"): "Run",
    ("Idle", "jog"): "Jog",
    ("Jog", "jog"): "Jog",
    ("Tool", "jog"): "Tool",
    ("Idle", "home"): "Home",
    ("Alarm", "home"): "Home",
    ("Home", "door"): "Alarm",
    **_from(("Run", "Jog", "Home"), "rest", "Idle"),
    # hold, door and tool change
    ("Idle", "hold"): "Hold:0",
    ("Run", "hold"): "Hold:1",
    ("Hold:1", "rest"): "Hold:0",
    ("Hold:0", "start"): "Run",
    ("Idle", "tool change"): "Tool",
    ("Tool", "start"): "Run",
    **_from(("Idle", "Run", "Hold:0", "Hold:1", "Tool", "Door:4"), "door", "Door:2"),
    ("Door:2", "rest"): "Door:0",
    ("Door:0", "start"): "Door:4",
    ("Door:4", "restored"): "Run",
    ("Jog", "door"): "Jog:Held",
    ("Jog:Held", "start"): "Run",
    **_from(HELD_JOG, "door", "Jog:Stuck"),
    # check mode and sleep
    ("Idle", "check"): "Check",
    ("Idle", "sleep"): "Sleep",
    ("Alarm", "sleep"): "Sleep:Alarm",
    # alarms
    **_from((*AT_WORK, "Alarm", "Inhibited"), "alarm", "Alarm"),
    **_from(("Sleep", "Sleep:Alarm"), "alarm", "Sleep:Alarm"),
    **_from((*AT_WORK, "Alarm", "Inhibited"), "critical alarm", "Critical"),
    **_from((*AT_WORK, "Alarm", "Critical", "Inhibited"), "emergency stop", "EStop"),
    **_from(("Sleep", "Sleep:Alarm"), "emergency stop", "Sleep:EStop"),
    ("EStop", "release"): "Alarm",
    ("Sleep:EStop", "release"): "Sleep:Alarm",
    **_from(("Alarm", "Critical"), "unlock", "Idle"),
    ("Sleep:Alarm", "unlock"): "Sleep",
    # stop and reset
    **_from((*AT_WORK, "Alarm", "Sleep", "Sleep:Alarm"), "stop", "Idle"),
    **_from((*AT_WORK, "Sleep"), "reset in motion", "Alarm"),
    **_from(("Idle", "Hold:0", "Tool", "Door:0", "Door:4", "Check"), "reset", "Idle"),
    **_from(("Alarm", "Critical", "Sleep", "Sleep:Alarm"), "reset", "Alarm"),
    # the cell stops and starts
    **_from((*AT_WORK, "Sleep"), "inhibit", "Inhibited"),
    ("Inhibited", "reset"): "Inhibited",
    ("Inhibited", "permit"): "Idle",
}
"""An event that has no row in the present condition has no effect on it."""


def reported(condition: Condition) -> str:
    """The word for a condition in a status report."""
    if condition in SLEEP:
        return "Sleep"
    if condition in HELD_JOG:
        return "Jog"
    return "Alarm" if condition in ALARM else condition


def diagram() -> str:
    """The table as a Mermaid state diagram; a `:` in a condition is written as `_`.

    An event that has the same effect in all conditions of `AT_WORK` is one arrow.
    """
    common = {
        (event, to)
        for (condition, event), to in TRANSITIONS.items()
        if all(TRANSITIONS.get((each, event)) == to for each in AT_WORK)
    }
    arrows: dict[tuple[str, str], list[str]] = {}
    for (condition, event), to in TRANSITIONS.items():
        at_work = condition in AT_WORK and (event, to) in common
        events = arrows.setdefault(("AtWork" if at_work else condition, to), [])
        events += [event] if event not in events else []
    inside = "".join(f"        {_node(condition)}\n" for condition in AT_WORK)
    return f"stateDiagram-v2\n    state AtWork {{\n{inside}    }}\n" + "".join(
        f"    {_node(before)} --> {_node(after)}: {', '.join(events)}\n"
        for (before, after), events in arrows.items()
    )


def _node(name: str) -> str:
    return name.replace(":", "_")
