"""Expected reactions to the faults of vision, in the answers that follow."""

from math import dist
from typing import Any

from understudy.errors import Refused
from understudy.ports.fault_reactions import (
    Reaction,
    Reactions,
    Seen,
    Trial,
    start_job,
)
from understudy.ports.object_finder import FoundObjects

SCANNED_S, ANSWERED_S = 30.0, 2.0
NOISE_MM = 1.0


def listen(trial: Trial) -> None:
    results: dict[int, Any] = {}
    trial.notes["results"] = results
    trial.own("vision").on_result(lambda ticket, result, now: results.update({ticket: result}))


def looked(trial: Trial) -> None:
    """the job has just got its first picture"""
    listen(trial)
    start_job(trial)
    trial.run_until(lambda: bool(trial.notes["results"]), SCANNED_S, "no picture")
    (trial.notes["first"],) = trial.notes["results"].values()


def look_again(trial: Trial) -> None:
    """another picture is asked for"""
    trial.notes["ticket"] = trial.part.request("", trial.now)
    trial.advance(ANSWERED_S)


def _result(trial: Trial) -> FoundObjects | None:
    """The disturbed answer."""
    found = trial.notes["results"].get(trial.notes["ticket"])
    return found if isinstance(found, FoundObjects) else None


def _objects(trial: Trial) -> Any:
    found = _result(trial)
    return () if found is None else found.objects


def _is_old(trial: Trial) -> bool:
    answer = trial.notes["results"].get(trial.notes["ticket"])
    return isinstance(answer, Refused) and answer.reason.startswith("an old picture")


def _is_shifted(trial: Trial) -> bool:
    """Every object is beside its true place, by at most the amplitude along each axis."""
    true = {each.part: each.pose for each in trial.notes["first"].objects if each.part}
    shifts = [
        dist(each.pose[:3], true[each.part][:3]) * 1e3
        for each in _objects(trial)
        if each.part in true
    ]
    return bool(shifts) and all(0.0 < by <= NOISE_MM * 3**0.5 for by in shifts)


REACTIONS: Reactions = {
    "vision_no_object": Reaction(
        looked,
        (Seen("no object is reported", lambda t: _result(t) is not None and not _objects(t)),),
        then=look_again,
    ),
    "vision_low_confidence": Reaction(
        looked,
        (
            Seen(
                "all objects have the confidence 0.3",
                lambda t: {each.confidence for each in _objects(t)} == {0.3},
            ),
        ),
        then=look_again,
    ),
    "vision_noise": Reaction(
        looked, (Seen("objects are reported beside their places", _is_shifted),), then=look_again
    ),
    "vision_silent": Reaction(
        looked, (Seen("no answer comes", lambda t: _result(t) is None),), then=look_again
    ),
    "vision_old_picture": Reaction(
        looked,
        (Seen("the answer comes late, and is refused as an old picture", _is_old),),
        parameters={"late_s": 1.0},
        then=look_again,
    ),
    "vision_wrong_class": Reaction(
        looked,
        (
            Seen(
                "all objects have the class `unknown`",
                lambda t: {each.class_name for each in _objects(t)} == {"unknown"},
            ),
        ),
        then=look_again,
    ),
}
