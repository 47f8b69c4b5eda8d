"""A REAL machine with three axes, as most are: its reports, and the lines that move it."""

import pytest

from understudy.errors import Refused
from understudy.ports import UNLIMITED
from understudy.ports.operation import Jog, Target
from understudy.robots.grblhal.driver import Config, GrblHalDriver, build
from understudy.robots.grblhal.machine.machine import UNITS
from understudy.robots.grblhal.operator import POSITION_UNKNOWN, RealMachineActions
from understudy.space.pose import Pose

AT = "<Idle|MPos:1.000,2.000,-3.000|Bf:100,1023|FS:0,0>"
INFO = "[VER:1.1f.20260817:]\r\n[OPT:VNML+,100,1024,3,0]\r\nok"
THREE = (AT, INFO, "$110=500.000\r\nok", AT)
FOUR = tuple(line.replace("-3.000|", "-3.000,90.000|") for line in THREE)


def connected(reports: tuple[str, ...], *, fewer_axes: bool = True) -> GrblHalDriver:
    """A driver whose controller has given these answers to its questions."""
    config = Config(fewer_axes=fewer_axes)
    driver = build(config, tool_pose=lambda axes: Pose(*axes), units=UNITS)
    driver.connect(0)
    driver.connected(0)
    for line in reports:
        sent(driver)
        driver.receive(f"{line}\r\n".encode(), 0)
    sent(driver)
    driver.enable(0)
    return driver


def sent(driver: GrblHalDriver) -> str:
    data = b""
    while more := driver.take(UNLIMITED):
        data += more
    return data.decode("latin-1")


def test_axes_that_the_machine_does_not_have_are_at_zero() -> None:
    driver = connected(THREE)
    assert driver.axis_count() == 3
    assert driver.joint_state(0).positions == pytest.approx((0.001, 0.002, -0.003, 0, 0, 0))
    assert connected(FOUR).axis_count() == 4


def test_a_place_in_work_coordinates_needs_the_offset_of_these_axes() -> None:
    driver = connected(THREE)
    driver.receive(b"<Idle|WPos:1.000,2.000,-3.000|WCO:10.000,0.000,0.000|FS:0,0>\r\n", 0)
    assert driver.joint_state(0).positions[0] == pytest.approx(0.011)


def test_an_arm_needs_all_its_axes() -> None:
    driver = connected(THREE, fewer_axes=False)
    assert driver.axis_count() == 6
    assert RealMachineActions(driver).jog(Jog("joint", 0, 0.01, 0.001), 0) == POSITION_UNKNOWN


def test_lines_name_the_axes_that_there_are() -> None:
    driver = connected(THREE)
    actions = RealMachineActions(driver)
    target = Target((0.005, 0.0, 0.0, 0.0, 0.0, 0.0), None, line=False, speed=0.0)
    assert actions.move_to(target, 0) is None
    assert sent(driver) == "N1G21 G90 G94 G53 G0 X5 Y0 Z0\n"
    driver.receive(b"ok\r\n", 0)
    assert actions.jog(Jog("joint", 1, -0.01, 0.0005), 0) is None
    assert sent(driver).lstrip("?") == "N2G21 G90 G94 G53 G1 X1 Y1.5 Z-3 F600\n"


def test_an_axis_that_is_not_there_does_not_jog() -> None:
    refused = RealMachineActions(connected(THREE)).jog(Jog("joint", 3, 0.1, 0.1), 0)
    assert refused == Refused("axis 3: the machine has axes 0…2")
