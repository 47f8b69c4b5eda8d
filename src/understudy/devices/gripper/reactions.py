"""Expected reactions to the faults of grippers: in a cycle of a job, and of the servo's driver."""

from understudy.errors import Refused
from understudy.ports.fault_reactions import (
    ENGINE_FAILED,
    JOB_FAILS,
    STANDS,
    NotPossibleError,
    Reaction,
    Reactions,
    Seen,
    Trial,
    active,
    start_job,
)

GRIPPED_S, CYCLE_S = 60.0, 30.0


def at_work(trial: Trial) -> None:
    """the job begins its first cycle"""
    ends: list[Refused | None] = []
    trial.notes["ends"] = ends
    trial.own("gripper").on_finished(lambda ticket, refused, now: ends.append(refused))
    start_job(trial)


def carrying(trial: Trial) -> None:
    """the job carries a part"""
    at_work(trial)
    gripper = trial.own("gripper")
    trial.run_until(lambda: gripper.has_part(trial.now), GRIPPED_S, "no part is gripped")
    trial.advance(1.0)


PART_GONE = Seen("no part is held", lambda t: not t.own("gripper").has_part(t.now), lasts=True)
MISSED_AND_GRIPPED = Seen(
    "a grip is missed, and a later one holds a part",
    lambda t: any(each is not None for each in t.notes["ends"]) and t.part.has_part(t.now),
)


def stuck(sensor: str, value: float) -> Reaction:
    return Reaction(
        carrying,
        (active(f"gripper fault: the {sensor} sensor is stuck"), ENGINE_FAILED, JOB_FAILS, STANDS),
        within_s=CYCLE_S,
        parameters={"value": value},
    )


# ── servo grippers ──


def activated(trial: Trial) -> None:
    """the servo gripper is activated and open"""
    ends: list[Refused | None] = []
    trial.notes["ends"] = ends
    gripper = trial.own("gripper")
    gripper.on_finished(lambda ticket, refused, now: ends.append(refused))
    trial.run_until(lambda: gripper.is_ready(trial.now), 30.0, "the gripper is not ready")
    _command(trial, "start_release")
    trial.run_until(lambda: bool(ends), 30.0, "the gripper does not open")
    ends.clear()
    trial.notes["opening"] = gripper.opening(trial.now)


def closing(trial: Trial) -> None:
    """the fingers of a servo gripper close"""
    activated(trial)
    _command(trial, "start_grip")
    opening = trial.notes["opening"]
    trial.run_until(
        lambda: trial.part.opening(trial.now) < 0.8 * opening, 10.0, "the fingers do not close"
    )


def close(trial: Trial) -> None:
    """the gripper closes by a command"""
    _command(trial, "start_grip")


def _command(trial: Trial, name: str) -> None:
    refused = getattr(trial.own("gripper"), name)(trial.now)
    if isinstance(refused, Refused):
        raise NotPossibleError(refused.reason)


REFUSED = Seen("the command ends with a refusal", lambda t: any(t.notes["ends"]))
HALF_OPEN = Seen(
    "the fingers stand half open",
    lambda t: t.part.opening(t.now) > 0.1 * t.notes["opening"] and not t.part.busy(),
    lasts=True,
)
ENDS_WELL = Seen(
    "the command ends as without the fault: nothing to hold, after a repeated request",
    lambda t: len(t.notes["ends"]) == 1 and t.notes["ends"][0].reason.startswith("MISSED"),
)

REACTIONS: Reactions = {
    "finger_blocked": Reaction(closing, (HALF_OPEN,), within_s=5.0),
    "drive_fault": Reaction(
        closing, (active("servo gripper"), ENGINE_FAILED, REFUSED), within_s=5.0
    ),
    "registers_frozen": Reaction(
        activated,
        (active("servo gripper: the registers are frozen"), ENGINE_FAILED, REFUSED, STANDS),
        within_s=10.0,
        then=close,
    ),
    "cable_cut": Reaction(closing, (REFUSED,), within_s=10.0, parameters={"duration_s": 60.0}),
    "answer_lost": Reaction(activated, (ENDS_WELL,), within_s=10.0, then=close),
    "closed_sensor_stuck": stuck("closed", 1.0),
    "opened_sensor_stuck": stuck("opened", 0.0),
    "part_sensor_stuck": Reaction(
        carrying,
        (active("gripper fault"), ENGINE_FAILED, JOB_FAILS, STANDS),
        within_s=CYCLE_S,
        parameters={"value": 1.0},
    ),
    "valve_stuck": Reaction(
        carrying,
        (active("gripper fault: the valve is stuck"), ENGINE_FAILED, JOB_FAILS, STANDS),
        within_s=CYCLE_S,
    ),
    "air_lost": Reaction(
        carrying,
        (active("gripper fault: there is no compressed air"), ENGINE_FAILED, JOB_FAILS, STANDS),
        within_s=CYCLE_S,
    ),
    "vacuum_leak": Reaction(
        carrying,
        (active("gripper fault: the cup leaks"), ENGINE_FAILED, JOB_FAILS, PART_GONE, STANDS),
        within_s=CYCLE_S,
        parameters={"share": 0.9},
    ),
    "slip": Reaction(carrying, (PART_GONE, JOB_FAILS, STANDS), within_s=5.0),
    "grip_miss": Reaction(at_work, (MISSED_AND_GRIPPED,), within_s=GRIPPED_S),
}
