"""Courses for tests: cells with exercises in lock-step, and how each shipped exercise is solved."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from tests.benches import Bench

from understudy.jobs.training.command_line import write_cell
from understudy.jobs.training.exercise import shipped_exercises

STEP, LONG_STEP = 0.25, 5.0
LONGEST_S = 900.0


class Trainee:
    """A trainee with a script: commands of the operator, and looks at the cell."""

    def __init__(self, folder: Path, cell: str, course: dict[str, Any] | None = None) -> None:
        self.bench = Bench(str(write_cell(folder, cell, course or {})), files=folder)

    def start(self, exercise: str) -> None:
        self.bench.do("start_exercise", exercise=exercise)
        fleet: Any = self.bench.live._cell.faces.get("nats")
        if fleet is not None:  # its broker is there again
            fleet.open("nats", self.bench.live._cell.now)

    def do(self, command: str, **parameters: Any) -> Any:
        return self.bench.do(command, **parameters)

    def forward(self, seconds: float) -> None:
        self.bench.forward(seconds)

    def part(self, name: str) -> Any:
        return msgspec.to_builtins(self.bench.do("status")["parts"][name])

    @property
    def course(self) -> dict[str, Any]:
        found: dict[str, Any] = self.part("course")
        return found

    @property
    def task(self) -> int:
        """The number of the present task, from 1 on; 0 if no exercise is running."""
        progress = self.course["progress"]
        return 0 if progress is None else progress["task"] + 1

    def until(self, condition: Callable[[], bool], what: str, step: float = STEP) -> None:
        for _ in range(round(LONGEST_S / step)):
            if condition():
                return
            self.forward(step)
        raise AssertionError(f"{what} did not come: {self.course}")

    def until_task(self, number: int) -> None:
        """Waits until this task has begun, or the exercise has ended."""
        self.until(lambda: self.task in (0, number), f"task {number}")
        assert self.task == number, self.course

    def result(self) -> dict[str, Any]:
        """Waits for the end of the exercise."""
        self.until(lambda: not self.course["running"], "the end", step=LONG_STEP)
        found: dict[str, Any] = self.course["last"]
        return found

    def close(self) -> None:
        self.bench.close()


MakesTrainee = Callable[..., Trainee]


# ── how the shipped exercises are solved ────────────────────────────────────────────────────────


def weld_first_steps(trainee: Trainee) -> None:
    trainee.do("enable", robot="g60")
    trainee.until_task(2)
    trainee.do("home", robot="g60")
    trainee.until_task(3)
    trainee.do("go_to_point", robot="g60", name="P1")


def weld_seam(trainee: Trainee) -> None:
    trainee.do("enable", robot="g60")
    trainee.do("run_program", robot="g60")


def weld_arc_fault(trainee: Trainee) -> None:
    weld_seam(trainee)
    trainee.until_task(3)
    trainee.forward(5.0)
    trainee.do("reset")
    trainee.do("enable", robot="g60")
    trainee.until_task(4)
    trainee.do("continue_weld", robot="g60", overlap_mm=5)


def weld_stop_in_time(trainee: Trainee) -> None:
    weld_seam(trainee)
    trainee.until_task(2)

    def is_there() -> bool:
        _, y, z, *_ = trainee.bench.pose("g60")
        return -215.0 < y < -150.0 and z < 301.0

    trainee.until(is_there, "the place")
    trainee.do("stop_program", robot="g60")
    trainee.until_task(3)
    trainee.do("move_to", robot="g60", pose_mm_deg=[450, -215, 450, 180, 0, 0], line=True)


def pick_change_tool(trainee: Trainee) -> None:
    trainee.do("enable", robot="g60")
    for mode in ("WELDING", "PICKPLACE"):
        trainee.do("request_mode", robot="g60", mode=mode)
        asked = lambda: trainee.part("g60.modes")["step"] == "CONFIRM_TOOL"  # noqa: E731
        trainee.until(asked, "the question")
        trainee.do("confirm_tool", robot="g60")
        settled = lambda: trainee.part("g60.modes")["step"] == "SETTLED"  # noqa: E731
        trainee.until(settled, "the mode")


def pick_lost_part(trainee: Trainee) -> None:
    trainee.do("enable", robot="g60")
    trainee.do("start_pick_place", robot="g60")
    trainee.until_task(3)
    trainee.do("reset_pick_place", robot="g60")
    trainee.until_task(4)
    trainee.do("start_pick_place", robot="g60")


def _go_to_the_workpiece(trainee: Trainee) -> None:
    trainee.do("home", robot="machine")
    trainee.until_task(2)
    for line in ("G53 G0 X-280 Y-230", "G53 G0 Z-80"):
        trainee.do("mdi", robot="machine", line=line)
        trainee.forward(10.0)
    trainee.until_task(3)


def mill_first_part(trainee: Trainee) -> None:
    _go_to_the_workpiece(trainee)
    trainee.do("mdi", robot="machine", line="G10 L20 P1 X0 Y0 Z0")
    trainee.do("run_program", robot="machine")


def mill_emergency_stop(trainee: Trainee) -> None:
    trainee.do("home", robot="machine")
    _homed(trainee)
    trainee.do("run_program", robot="machine")
    trainee.until_task(3)
    trainee.do("reset")
    trainee.until_task(4)
    trainee.do("home", robot="machine")
    trainee.until_task(5)
    trainee.until(lambda: trainee.part("machine")["state"] == "Idle", "rest")
    trainee.do("run_program", robot="machine")


def _homed(trainee: Trainee) -> None:
    def at_rest() -> bool:
        machine = trainee.part("machine")
        return bool(machine["homed_axes"] == 7 and machine["state"] == "Idle")

    trainee.until(at_rest, "the home position")


def drive(trainee: Trainee, x: float, y: float, yaw_deg: float | None = None) -> None:
    places = [[x, y, yaw_deg]]
    answer = trainee.do("fleet_order", robots=["robot-1"], order="drive", places=places)
    assert answer["done"] == 1, answer


def amr_drive_to_dock(trainee: Trainee) -> None:
    trainee.until_task(2)
    drive(trainee, 6.5, 1.0)
    trainee.until_task(3)
    drive(trainee, 6.5, 5.0, 90.0)


def amr_emergency_stop(trainee: Trainee) -> None:
    trainee.until(lambda: trainee.part("robot-1")["state"] == "RUNNING", "the robot")
    drive(trainee, 6.5, 1.0)
    trainee.until_task(3)
    trainee.do("fleet_order", robots=["robot-1"], order="reset")
    trainee.until_task(4)
    trainee.forward(0.5)
    drive(trainee, 6.5, 1.0)


SOLVED: dict[str, Callable[[Trainee], None]] = {
    each.__name__: each
    for each in (
        weld_first_steps,
        weld_seam,
        weld_arc_fault,
        weld_stop_in_time,
        pick_change_tool,
        pick_lost_part,
        mill_first_part,
        mill_emergency_stop,
        amr_drive_to_dock,
        amr_emergency_stop,
    )
}


# ── and how they are failed ─────────────────────────────────────────────────────────────────────


def does_nothing(trainee: Trainee) -> None:
    """The time limit ends the exercise."""
    trainee.forward(1.0)


def runs_into_the_fixture(trainee: Trainee) -> None:
    weld_seam(trainee)


def stops_the_seam(trainee: Trainee) -> None:
    weld_seam(trainee)
    trainee.until_task(3)
    trainee.do("stop_program", robot="g60")


def waits_with_the_alarm(trainee: Trainee) -> None:
    weld_seam(trainee)
    trainee.until_task(3)


def mills_without_zero(trainee: Trainee) -> None:
    _go_to_the_workpiece(trainee)
    trainee.do("run_program", robot="machine")


def drives_to_the_post(trainee: Trainee) -> None:
    trainee.until_task(2)
    drive(trainee, 3.2, 3.0)


def leaves_the_stop_pressed(trainee: Trainee) -> None:
    trainee.until(lambda: trainee.part("robot-1")["state"] == "RUNNING", "the robot")
    drive(trainee, 6.5, 1.0)
    trainee.until_task(3)


FAILED: dict[str, tuple[Callable[[Trainee], None], str]] = {
    "weld_first_steps": (does_nothing, "time"),
    "weld_seam": (stops_the_seam, "failure"),
    "weld_arc_fault": (waits_with_the_alarm, "task_time"),
    "weld_stop_in_time": (runs_into_the_fixture, "failure"),
    "pick_change_tool": (does_nothing, "time"),
    "pick_lost_part": (does_nothing, "time"),
    "mill_first_part": (mills_without_zero, "failure"),
    "mill_emergency_stop": (does_nothing, "time"),
    "amr_drive_to_dock": (drives_to_the_post, "failure"),
    "amr_emergency_stop": (leaves_the_stop_pressed, "task_time"),
}
SHIPPED = {name: each.cell for name, each in shipped_exercises().items()}
"""Name → cell."""
