"""The pick & place job: cycle, pallet, safety, commands, page, command line, offline check."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_args

from understudy.jobs.pick_place.config import (
    CycleConfig,
    PalletConfig,
    SafetyConfig,
    check_sections,
)
from understudy.jobs.pick_place.status import ALARMS, PickPlaceState
from understudy.ports import Component
from understudy.ports.exploration import Exploration, Explored, Look, Reached
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
from understudy.ports.job_arm import JobArm
from understudy.ports.jobs import JobSections, JobSite
from understudy.ports.object_finder import ObjectFinder

if TYPE_CHECKING:
    from understudy.app.validate import OfflineJob

CYCLE, SAFETY, PALLET = "pickplace", "safety", "pallet"
SECTIONS = {CYCLE: CycleConfig, SAFETY: SafetyConfig, PALLET: PalletConfig}


def needs(sections: Mapping[str, Any]) -> tuple[type, ...]:
    cycle: CycleConfig | None = sections.get(CYCLE)
    if cycle is None:
        return ()
    return (JobArm, Hand, ObjectFinder) if cycle.looks else (JobArm, Hand)


def check(robot: JobSections) -> None:
    cycle: CycleConfig | None = robot.sections.get(CYCLE)
    if cycle is not None:
        check_sections(cycle, robot.sections.get(SAFETY) or SafetyConfig())


def build(site: JobSite) -> dict[str, Component]:
    """`motion`, `vision`, `pallet`, `source_pallet` and `pick_place`, those that the sections ask
    for; only the pallet without the section `pickplace`."""
    if CYCLE not in site.sections and PALLET not in site.sections:
        return {}
    from understudy.jobs.pick_place.assembly import pick_place_components

    return pick_place_components(site)


build_real = build


def offline_check() -> "OfflineJob":
    """The check of the job without running its cell, for `understudy validate`."""
    from understudy.jobs.pick_place import offline

    return offline


# ── expected reactions to faults of the arm, of vision and of the camera, in a cycle ──

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


def released_in_place(run: Explored, place: str) -> Look:
    """a running job opens the hand with a part only in RELEASING"""
    job: Any = run.components[place]
    hand = next(
        each
        for name, each in run.components.items()
        if name.startswith(place.partition(".")[0] + ".") and isinstance(each, Hand)
    )
    start, broken = hand.start_release, [""]

    def start_release(now: int, *, timeout_ms: float = 0.0) -> Any:
        state = job.state.state
        held = hand.status(now).part_detected and job.is_running() and state != "RELEASING"
        if held and not run.rehearses and not broken[0]:
            broken[0] = f"the hand of {place} opens in {state}"
        return start(now, timeout_ms=timeout_ms)

    hand.start_release = start_release  # type: ignore[method-assign]
    return lambda: broken[0]


def _reached(job: Any, now: int) -> Iterator[Reached]:
    status = job.status(now)
    yield "state", status.state
    if (end := status.code or status.reason) in ALARMS:
        yield "alarm", end


EXPLORED = Exploration(
    acts={
        "start": lambda job, now: job.start(now),
        "one cycle": lambda job, now: job.start(now, max_cycles=1),
        "pause": lambda job, now: job.pause(now),
        "resume": lambda job, now: job.resume(now),
        "stop": lambda job, now: job.stop(now),
        "reset": lambda job, now: job.reset(now),
        "finish": lambda job, now: job.finish(now),
        "retract": lambda job, now: job.emergency_retract(now),
        "release the part": lambda job, now: job.release_part(now),
        "put the part back": lambda job, now: job.put_back(now),
    },
    invariants=(released_in_place,),
    reach={"state": get_args(PickPlaceState), "alarm": tuple(ALARMS)},
    reached=_reached,
)
