"""Small pictures of all shipped cells at work, and the moving picture of the welding cell."""

from collections.abc import Callable, Collection, Iterator

from tests.browsers import RunningCell, Screen
from tests.pictures import Picture, advance_until
from tests.pictures.calibration import POSES
from tests.pictures.fleet import TASKS
from tests.pictures.pages import run

WELDING = "g60_welding"
Prepare = Callable[[Screen, RunningCell], None]
SETTLED_MS = 2500
MOVING_STEP_S = 0.4
MOST_FRAMES = 70
WHEEL_TURNS = 4


def closer(screen: Screen) -> None:
    """The scene from nearer: these pictures are small."""
    screen.page.mouse.move(640, 480)
    for _ in range(WHEEL_TURNS):
        screen.page.mouse.wheel(0, -120)
        screen.page.wait_for_timeout(100)


def shown(screen: Screen) -> None:
    """The page has drawn what it was sent; no tooltip is in the way."""
    if "/cell" in screen.page.url:
        closer(screen)
    screen.page.mouse.move(400, 140)
    screen.page.wait_for_timeout(SETTLED_MS)


def _capabilities(cell: RunningCell, robot: str) -> Collection[str]:
    found: Collection[str] = next(
        each["capabilities"] for each in cell.ask("robots")["robots"] if each["name"] == robot
    )
    return found


def program(robot: str, name: str, seconds: float) -> Prepare:
    """A shipped program runs for some seconds."""

    def prepare(screen: Screen, cell: RunningCell) -> None:
        text = cell.ask("read_program", robot=robot, name=name, source="shipped")["text"]
        if "enable" in _capabilities(cell, robot):
            cell.ask("enable", robot=robot)
        cell.ask("load_program", robot=robot, text=text, name=name)
        cell.ask("run_program", robot=robot)
        cell.ask("advance", seconds=seconds)
        shown(screen)

    return prepare


def job(seconds: float) -> Prepare:
    """The pick & place job of the cell runs for some seconds."""

    def prepare(screen: Screen, cell: RunningCell) -> None:
        cell.ask("enable", robot="g60")
        cell.ask("start_pick_place")
        cell.ask("advance", seconds=seconds)
        shown(screen)

    return prepare


def all_programs(screen: Screen, cell: RunningCell) -> None:
    cell.ask("run_programs")
    cell.ask("advance", seconds=12.0)
    shown(screen)


def demo(screen: Screen, cell: RunningCell) -> None:
    """Everything of the demo moves; in steps it does not by itself."""
    cell.ask("run_programs")
    cell.ask("advance", seconds=10.0)
    cell.ask("fleet_task", robot="robot-1", x_m=2.6, y_m=2.0)
    cell.ask("fleet_task", robot="robot-2", x_m=4.2, y_m=-1.8)
    cell.ask("advance", seconds=4.0)
    shown(screen)


def dock(screen: Screen, cell: RunningCell) -> None:
    """The cart is on its way to the arm."""
    cell.ask("run_programs")
    cell.ask("fleet_task", robot="cart", x_m=1.4, y_m=0.0)
    cell.ask("advance", seconds=6.0)
    shown(screen)


def calibrating(screen: Screen, cell: RunningCell) -> None:
    cell.ask("enable", robot="g60")
    cell.ask("hand_eye_start", poses=POSES)
    cell.ask("advance", seconds=8.0)
    shown(screen)


def tasks(screen: Screen, cell: RunningCell) -> None:
    """Mobile robots are on their way."""
    screen.until(lambda: screen.page.evaluate("window.fleet.report().connected"), "NATS")
    cell.ask("advance", seconds=2.0)
    for robot, (x, y) in TASKS.items():
        cell.ask("fleet_task", robot=robot, x_m=x, y_m=y)
    cell.ask("advance", seconds=8.0)
    shown(screen)


def standing(screen: Screen, cell: RunningCell) -> None:
    """Mobile robots without a task."""
    screen.until(lambda: screen.page.evaluate("window.fleet.report().connected"), "NATS")
    cell.ask("advance", seconds=3.0)
    shown(screen)


def one_task(screen: Screen, cell: RunningCell) -> None:
    screen.until(lambda: screen.page.evaluate("window.fleet.report().connected"), "NATS")
    cell.ask("advance", seconds=2.0)
    cell.ask("fleet_task", robot="robot-1", x_m=6.0, y_m=4.5)
    cell.ask("advance", seconds=4.0)
    shown(screen)


def seam(screen: Screen, cell: RunningCell) -> Iterator[None]:
    """The arm comes from its home, welds the seam, and goes back."""
    text = cell.ask("read_program", robot="g60", name="seam.gcode", source="shipped")["text"]
    run(cell, text, "seam.gcode")
    closer(screen)
    for _ in range(MOST_FRAMES):
        cell.ask("advance", seconds=MOVING_STEP_S)
        screen.page.wait_for_timeout(250)
        yield
        if cell.ask("program", robot="g60")["state"] != "running":
            break


def welding(screen: Screen, cell: RunningCell) -> None:
    text = cell.ask("read_program", robot="g60", name="seam.gcode", source="shipped")["text"]
    run(cell, text, "seam.gcode")

    def burns() -> bool:
        return bool(cell.ask("status")["parts"]["g60.welder"]["arc_on"])

    advance_until(screen, cell, burns, step_s=0.1, what="the arc")
    cell.ask("advance", seconds=3.0)
    shown(screen)


def _cell(name: str, prepare: Prepare, path: str = "/cell", *options: str) -> Picture:
    return Picture(f"cell_{name}", name, path, prepare, options, small=True)


PICTURES = [
    Picture("welding", WELDING, "/cell", frames=seam),
    _cell(WELDING, welding),
    _cell("default", all_programs),
    _cell("two_arms", all_programs),
    _cell("dock", dock),
    _cell("demo", demo),
    _cell("pick_place", job(40.0)),
    _cell("bin_picking", job(30.0)),
    _cell("sorting", job(40.0)),
    _cell("assembly", job(25.0)),
    _cell("machine_tending", job(30.0)),
    _cell("calibration", calibrating),
    _cell("grblhal_6axis", program("machine", "machine_pocket.gcode", 12.0)),
    _cell("kuka_eki", program("kuka", "kuka_square.gcode", 6.0)),
    _cell("text_robot", program("bench", "text_square.txt", 1.2)),
    _cell("fleet", tasks, "/fleet"),
    _cell("mobile_robot", one_task, "/fleet"),
    _cell("hall", standing, "/fleet", "--robots", "60"),
]
