"""Reasons to doubt a hand-eye calibration."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.sight.test_calibrator import exact_calibrator

from understudy.jobs.hand_eye.config import HandEyeConfig
from understudy.jobs.hand_eye.state import TEXTS, Checked, Doubt, doubt_text, doubts
from understudy.sight.bundle import ScaleError
from understudy.sight.calibrator import USUAL_ROBOT, CalibrationResult, HeldOut, PoseResidual
from understudy.units import DEG, MM

GOOD = Checked(True, 0.2, 0.01)
BAD = Checked(False, 1.4, 0.01)


@pytest.fixture(scope="module")
def result() -> CalibrationResult:
    found = exact_calibrator(1, "eye_in_hand")[0].compute()
    assert isinstance(found, CalibrationResult)
    return replace(found, scale=None, held_out=HeldOut(0.1, 0.2, 0.01, 15), distance_mm=400.0)


def scale(share: float, deviation: float = 1e-4) -> ScaleError:
    return ScaleError("target_size", share, deviation, 1.0)


@pytest.mark.parametrize(
    ("changed", "checked", "kinds"),
    [
        ({}, [GOOD], []),
        ({}, [], []),
        ({}, [GOOD, BAD], ["check"]),
        ({"poses": (PoseResidual(1.2, 0.0),)}, [GOOD], ["residual"]),
        ({"held_out": HeldOut(1.2, 3.0, 0.0, 15)}, [GOOD], ["held_out"]),
        ({"scale": scale(0.02)}, [GOOD], ["target_size"]),
        ({"scale": scale(0.02)._replace(kind="focal_length")}, [BAD], ["focal_length", "check"]),
        ({"scale": scale(-0.002)}, [GOOD], []),  # 0.8 mm
        ({"scale": scale(0.02, deviation=0.01)}, [GOOD], []),  # not sure
    ],
)
def test_a_result_is_doubted(
    result: CalibrationResult, changed: dict[str, Any], checked: list[Checked], kinds: list[str]
) -> None:
    found = doubts(replace(result, **changed), checked, 1.0)
    assert [each.kind for each in found] == kinds


def test_the_text_names_the_figures() -> None:
    text = doubt_text(Doubt("target_size", 5.86, -1.67), 1.0)
    assert text == (
        "the target is 1.67 % smaller than its configured size, which moves the camera by 5.86 mm: "
        "measure the target (1 mm are allowed)"
    )
    assert set(TEXTS) == set(Doubt.__annotations__["kind"].__args__)


@pytest.mark.parametrize(
    ("given", "shift", "turn"),
    [
        ({"robot_error_mm": 3.0}, 3.0 * MM / np.sqrt(3.0), USUAL_ROBOT.turn),
        ({"robot_error_deg": 0.3}, USUAL_ROBOT.shift, 0.3 * DEG / np.sqrt(3.0)),
        ({"robot_error_mm": 0.0, "robot_error_deg": 0.0}, 0.0, 0.0),
    ],
)
def test_an_error_of_the_robot_that_is_not_given_is_as_usual(
    given: dict[str, float], shift: float, turn: float
) -> None:
    noise = HandEyeConfig(**given).noise()  # type: ignore[arg-type]
    assert noise is not None
    assert (noise.shift, noise.turn) == pytest.approx((shift, turn))
    assert noise.exact_robot == (shift == 0.0)
    assert HandEyeConfig().noise() is None
