"""Pictures of the pick & place page, and of the cell page of a pick & place cell."""

from tests.browsers import RunningCell, Screen
from tests.pictures import Picture, advance_until

CELL = "pick_place"


def working(cell: RunningCell) -> None:
    """Starts the job, if it does not run yet."""
    if not cell.ask("pick_place")["running"]:
        cell.ask("enable", robot="g60")
        cell.ask("start_pick_place")


def until(screen: Screen, cell: RunningCell, state: str) -> None:
    """Lets time pass until the job is in the state, and half a second more."""

    def there() -> bool:
        return bool(cell.ask("pick_place")["state"] == state)

    advance_until(screen, cell, there, step_s=0.1, what=state)
    cell.ask("advance", seconds=0.3)
    screen.reads("cycle-state", state)
    screen.page.mouse.move(400, 140)  # no tooltip
    screen.page.wait_for_timeout(2000)


def bins(screen: Screen, cell: RunningCell) -> None:
    working(cell)
    cell.ask("advance", seconds=25.0)
    screen.page.wait_for_timeout(3000)


def carries(screen: Screen, cell: RunningCell) -> None:
    """The job has placed some parts and carries one."""
    working(cell)
    cell.ask("advance", seconds=60.0)
    until(screen, cell, "MOVE_TO_PLACE")


def in_scene(screen: Screen, cell: RunningCell) -> None:
    working(cell)
    screen.press("pane-scene")
    until(screen, cell, "APPROACH_PLACE")


def stopped(screen: Screen, cell: RunningCell) -> None:
    """An emergency stop, and what to do about it."""
    working(cell)
    until(screen, cell, "MOVE_TO_PICK")
    screen.press("emergency-stop")

    def ended() -> bool:
        return bool(cell.ask("pick_place")["state"] == "ERROR")

    screen.until(ended, "the stop")  # no time passes: the page sends it
    cell.ask("advance", seconds=0.5)
    screen.reads("cycle-state", "ERROR")
    screen.page.wait_for_timeout(1500)


def changeover(screen: Screen, cell: RunningCell) -> None:
    """The tool for welding is to be mounted."""
    cell.ask("reset")
    cell.ask("enable", robot="g60")
    cell.ask("reset_pick_place")
    cell.ask("advance", seconds=1.0)
    screen.press("mode-WELDING")
    screen.press("do-change")
    screen.until(lambda: screen.at("change-step").is_visible(), "the changeover")

    def confirms() -> bool:
        return "CONFIRM_TOOL" in screen.text("change-step")

    advance_until(screen, cell, confirms, step_s=0.5, what="the confirmation")
    screen.at("abort-change").scroll_into_view_if_needed()
    screen.page.wait_for_timeout(1500)


PICTURES = [
    Picture("hmi_pick_place", "bin_picking", "/cell", bins),
    Picture("pick_place_page", CELL, "/pick_place", carries),
    Picture("pick_place_scene", CELL, "/pick_place", in_scene),
    Picture("pick_place_fault", CELL, "/pick_place", stopped),
    Picture("pick_place_changeover", CELL, "/pick_place", changeover),
]
