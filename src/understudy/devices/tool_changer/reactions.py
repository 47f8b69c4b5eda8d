"""Expected reactions to the faults of a tool changer: during a change, and to the job of it."""

from understudy.errors import Refused
from understudy.ports.fault_reactions import (
    ENGINE_FAILED,
    STANDS,
    NotPossibleError,
    Reaction,
    Reactions,
    Seen,
    Trial,
    active,
    enable,
    status,
)

CHANGE_S = 60.0
OTHER = 2
"""The tool that is fetched; the changer's cell has another one mounted."""


def ready(trial: Trial) -> None:
    """a tool is mounted, the drives are on"""
    enable(trial)
    trial.own("tool_change")


def change(trial: Trial) -> None:
    """tool 2 is fetched"""
    ends: list[Refused | None] = []
    trial.notes["ends"] = ends
    changer = trial.own("tool_change")
    changer.on_finished(lambda ticket, refused, now: ends.append(refused))
    ticket = changer.change(OTHER, trial.now)
    if isinstance(ticket, Refused):
        raise NotPossibleError(ticket.reason)


FAILED = (
    Seen(
        "the change ends with a refusal",
        lambda t: any(each is not None for each in t.notes["ends"]),
    ),
    status("phase", "FAULT", of="tool_change"),
    ENGINE_FAILED,
    STANDS,
)
BLOCKED = active("the lock does not move")
LEVEL = {"value": 1.0}
REACTIONS: Reactions = {
    "lock_fails": Reaction(ready, (*FAILED, BLOCKED), within_s=CHANGE_S, then=change),
    "unlock_fails": Reaction(ready, (*FAILED, BLOCKED), within_s=CHANGE_S, then=change),
    "locked_sensor_stuck": Reaction(
        ready,
        (*FAILED, active("the sensor locked is stuck")),
        within_s=CHANGE_S,
        parameters=LEVEL,
        then=change,
    ),
    "present_sensor_stuck": Reaction(
        ready,
        (*FAILED, active("the sensor present is stuck")),
        within_s=CHANGE_S,
        parameters=LEVEL,
        then=change,
    ),
    "tool_missing": Reaction(
        ready,
        (*FAILED, active(f"T{OTHER} is missing")),
        within_s=CHANGE_S,
        parameters={"tool": float(OTHER)},
        then=change,
    ),
}
