"""Expected reactions of the job to faults of the arm, of vision and of the camera, in a cycle."""

from understudy.ports.fault_reactions import (
    ENGINE_FAILED,
    JOB_FAILS,
    STANDS,
    Reaction,
    Reactions,
    Seen,
    Trial,
    start_job,
    status,
)
from understudy.ports.hand import Hand

JOB = "pick_place"
PICKED_S, STOPS_S = 60.0, 0.5


def carrying(trial: Trial) -> None:
    """the job carries a part to its place"""
    start_job(trial)
    job = trial.own(JOB)
    trial.run_until(
        lambda: job.status(trial.now).state == "MOVE_TO_PLACE", PICKED_S, "no part is carried"
    )
    trial.advance(0.2)


def _holds(trial: Trial) -> bool:
    return trial.find(Hand).status(trial.now).part_detected


STILL_HELD = Seen("the part is still held", _holds, lasts=True)
PICKS_LATER = Seen("a later picture leads to a part in the hand", _holds)
STOPPED = (JOB_FAILS, STILL_HELD, ENGINE_FAILED, STANDS)


DURING: Reactions = {
    "emergency_stop": Reaction(
        carrying, (status("code", "EMERGENCY_STOP", of=JOB), *STOPPED), within_s=STOPS_S
    ),
    "axis_fault": Reaction(
        carrying,
        (status("code", "ARM_FAULT", of=JOB), *STOPPED),
        within_s=STOPS_S,
        parameters={"axis": 1.0},
    ),
    "inputs_frozen": Reaction(carrying, (JOB_FAILS, ENGINE_FAILED, STANDS), within_s=30.0),
    **{
        fault: Reaction(start_job, (PICKS_LATER,), within_s=PICKED_S)
        for fault in (
            "vision_no_object",
            "vision_low_confidence",
            "vision_old_picture",
            "vision_silent",
            "vision_wrong_class",
        )
    },
}
