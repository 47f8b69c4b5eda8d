"""Poses for a hand-eye calibration: how many the arm must reach."""

from collections.abc import Sequence

import numpy as np
import pytest

from understudy.errors import Refused
from understudy.jobs.hand_eye.config import HandEyeConfig
from understudy.sight.calibration_poses import Sighting, calibration_flanges
from understudy.sight.lens import Lens
from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix

SEEN = matrix(Pose(0.0, 0.0, 0.4, np.pi, 0.0, 0.0))


def planned(count: int, spare: int, reached: int) -> list[Array] | Refused:
    """Of an arm that reaches this many of the poses."""
    lens = Lens(640, 480, 600.0, 600.0, 320.0, 240.0)
    outline = HandEyeConfig().target_outline()
    sighting = Sighting("eye_in_hand", lens, np.eye(4), SEEN, outline, SEEN)

    def allowed(flanges: Sequence[Array]) -> Sequence[bool]:
        chosen = np.linspace(0, len(flanges) - 1, reached).astype(int).tolist()
        return [number in chosen for number in range(len(flanges))]

    return calibration_flanges(sighting, count, allowed, spare=spare)


@pytest.mark.parametrize(("reached", "found"), [(60, 23), (20, 20), (18, 18)])
def test_spare_poses_are_not_needed(reached: int, found: int) -> None:
    poses = planned(18, 5, reached)
    assert not isinstance(poses, Refused)
    assert len(poses) == found


def test_too_few_poses_are_refused_with_the_number_that_is_needed() -> None:
    poses = planned(18, 5, 17)
    assert isinstance(poses, Refused)
    assert "reaches 17 of" in poses.reason
    assert "18 are needed" in poses.reason
