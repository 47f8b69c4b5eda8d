"""Pictures of the fleet page."""

from tests.browsers import RunningCell, Screen
from tests.pictures import Picture, advance_until

TASKS = {
    "robot-3": (10.5, 12.0),
    "robot-4": (2.0, 12.0),
    "robot-5": (16.0, 7.25),
    "robot-8": (5.0, 7.25),
}


def at_work(screen: Screen, cell: RunningCell) -> None:
    """Some robots are on their way, one is held, one is stopped."""
    screen.until(lambda: screen.page.evaluate("window.fleet.report().connected"), "NATS")
    cell.ask("advance", seconds=2.0)
    for robot, (x, y) in TASKS.items():
        cell.ask("fleet_task", robot=robot, x_m=x, y_m=y)
    cell.ask("fleet_traffic", robot="robot-2", hold=True)
    cell.ask("emergency_stop", robot="robot-7")
    screen.page.evaluate("window.fleet.choose('robot-3')")

    def is_on_its_way() -> bool:
        return bool(cell.ask("fleet_robot", robot="robot-3")["true_pose"][1] > 5.0)

    advance_until(screen, cell, is_on_its_way, step_s=0.1, what="its way")
    screen.page.wait_for_timeout(2500)


PICTURES = [Picture("fleet_page", "fleet", "/fleet", at_work)]
