"""Validation of waypoints."""

from tests.offline.validate.cases import cell

from understudy.app.validate import validate_waypoints
from understudy.offline.validate.report import Report
from understudy.offline.waypoints import Waypoint
from understudy.space.pose import Pose
from understudy.units import DEG, MM


def at(y: float, *, process: bool = False, x: float = 450.0) -> Waypoint:
    return Waypoint(Pose(x * MM, y * MM, 450 * MM, 180 * DEG, 0.0, 0.0), None, process)


def proved(name: str, *waypoints: Waypoint) -> Report:
    return validate_waypoints(
        [Waypoint((0.0, 0.0, 0.0, 0.0, 0.5, 0.0)), at(-100), *waypoints],
        cell(name),
        travel_speed_mm_s=100.0,
        process_speed_mm_s=10.0,
    )


def kinds(report: Report) -> list[tuple[int, str]]:
    return [(found.line, found.kind) for found in report.violations]


def test_a_seam_of_waypoints_passes_and_its_arc_takes_time() -> None:
    report = proved("auto_gas", at(0, process=True), at(50))
    assert report.passed, report.violations
    assert report.cycle_time["process_s"] > 100 / 10


def test_a_process_waypoint_needs_gas() -> None:
    report = proved("no_wait", at(0, process=True), at(50))
    assert kinds(report) == [(3, "process")]
    assert "gas" in report.violations[0].message


def test_a_process_waypoint_without_an_arc_is_a_violation() -> None:
    report = proved("auto_gas_no_wait", at(0, process=True), at(50))
    assert kinds(report) == [(3, "process")]
    assert "without an arc" in report.violations[0].message


def test_a_violation_has_the_number_of_the_waypoint() -> None:
    assert kinds(proved("bare", at(0, x=1800.0), at(50))) == [(3, "unreachable")]
