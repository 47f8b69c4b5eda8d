"""Wheels and outlines of robots, from their files."""

import pytest
from tests.robots.mobile.config.test_robot_file import changed

from understudy.robots.mobile.config.layout import Layout, outlines_of, wheel_rows, wheels_of
from understudy.robots.mobile.config.robot_file import RobotFile, read_robot_file


def robot(path: str = "identity.name", value: object = "R") -> RobotFile:
    return read_robot_file(changed(path, value), "f")


def test_the_wheels_are_those_of_the_drive_motors() -> None:
    layout = Layout([robot(), robot()])
    wheels = wheels_of(layout)
    assert wheel_rows(layout).tolist() == [0, 1, 3, 4], "motors 2 and 5 are grippers"
    assert wheels.coefficients.tolist() == [[1, 0, -0.24], [1, 0, 0.24]] * 2


def test_without_a_track_the_body_is_as_wide_as_its_track() -> None:
    wheels = wheels_of(Layout([robot("dimensions.trackWidthMm", None)]))
    assert wheels.coefficients[1].tolist() == [1, 0, 0.325]


@pytest.mark.parametrize(("model", "ahead"), [("differential", 0.0), ("ackermann", 0.26)])
def test_the_outline_is_around_the_pose(model: str, ahead: float) -> None:
    layout = Layout([robot("runtime.simulationProfile.driveModel", model)])
    assert outlines_of(layout)[0].tolist() == pytest.approx([0.45, 0.325, ahead])
