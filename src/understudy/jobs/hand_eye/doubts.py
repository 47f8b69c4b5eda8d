"""Reasons to doubt the result of a hand-eye calibration: it is then not written without `force`."""

from collections.abc import Mapping, Sequence

from understudy.jobs.hand_eye.state import Checked, Doubt
from understudy.sight.calibrator import HandEyeResult

TEXTS: Mapping[str, str] = {
    "target_size": "the target is {percent:.2f} % {larger} than its configured size, which moves "
    "the camera by {mm:.2f} mm: measure the target",
    "focal_length": "the focal length is {percent:.2f} % {larger} than that of the lens, which "
    "moves the camera by {mm:.2f} mm: calibrate the lens",
    "check": "a pose that was not used misses by {mm:.2f} mm: the target may have moved, or the "
    "robot is not exact",
    "residual": "the poses miss the common target by {mm:.2f} mm rms: the target may have moved, "
    "or the robot is not exact",
    "held_out": "poses that are predicted from the others miss by {mm:.2f} mm rms: more poses are "
    "needed, or the robot is not exact",
}


def doubts(result: HandEyeResult, checked: Sequence[Checked], tolerance_mm: float) -> list[Doubt]:
    """All reasons, the most telling first; empty if the result can be used."""
    found = []
    if result.scale is not None and result.scale_shift_mm > tolerance_mm:
        kind, share = result.scale.kind, result.scale.share
        found.append(Doubt(kind, result.scale_shift_mm, 100.0 * share))
    if missed := [each.distance_mm for each in checked if not each.passed]:
        found.append(Doubt("check", max(missed)))
    if result.rms_mm > tolerance_mm:
        found.append(Doubt("residual", result.rms_mm))
    if result.held_out is not None and result.held_out.rms_mm > tolerance_mm:
        found.append(Doubt("held_out", result.held_out.rms_mm))
    return found


def doubt_text(doubt: Doubt, tolerance_mm: float) -> str:
    larger = "larger" if doubt.percent > 0 else "smaller"
    text = TEXTS[doubt.kind].format(mm=doubt.mm, percent=abs(doubt.percent), larger=larger)
    return f"{text} ({tolerance_mm:g} mm are allowed)"
