"""`understudy pick-place`: the pick & place job of a running cell, or of a cell run headless."""

import sys
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import to_builtins
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from understudy.app.control_client import result_of
from understudy.app.ready_file import Ready, printable
from understudy.cli.job_client import ask_job, fail, refuse_real, warn_if_time_stands
from understudy.cli.job_options import job_options, takes_job_options
from understudy.cli.options import (
    JsonOption,
    ReadyFileOption,
    RunningOption,
    cell_option,
    is_quiet,
    put_json,
    robot_option,
)
from understudy.cli.parameters import Exit, Group, Option
from understudy.cli.status import one_cell
from understudy.cli.warm import compile_for_cell
from understudy.errors import ConfigError, Refused
from understudy.jobs.pick_place.status import GOOD_ENDS

if TYPE_CHECKING:
    from understudy.jobs.pick_place.headless import Summary

pick_place = Group(
    help="Run, watch, stop and reset the pick & place job of a robot: in a live cell, or headless.",
)

LOOK_SECONDS = 0.2
RobotOption = Annotated[str, robot_option("robot with the job; default: the only one")]


@pick_place.command()
@takes_job_options
def run(
    cell: Annotated[
        str, cell_option("it runs headless, at full speed; default: the running cell")
    ] = "",
    cycles: Annotated[int, Option(min=-1, help="number of cycles; -1: until it ends")] = -1,
    robot: RobotOption = "",
    seed: Annotated[int | None, Option(help="seed of a headless run")] = None,
    most_s: Annotated[
        float, Option(min=0.001, max=1e6, help="simulated seconds of a headless run, at most")
    ] = 3600.0,
    no_wait: Annotated[
        bool, Option("--no-wait", help="start the job of a running cell, and leave")
    ] = False,
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    real: Annotated[
        bool, Option("--real", help="move the robot of the running cell also if it is REAL")
    ] = False,
    json: JsonOption = None,
) -> None:
    """Run cycles: with `--cell` headless with a summary, else in a running cell.

    Exit 1 if no part was placed, or the job ended with a fault.
    """
    if cycles == 0:
        raise ConfigError("--cycles", value=cycles, allowed="1 and more, or -1")
    if cell:
        _run_headless(cell, robot, cycles, seed, most_s, json)
        return
    for name, value in job_options().items():
        if value is not None:
            allowed = f"--cell CELL --{name} …"
            raise ConfigError(f"--{name} is for a headless run", allowed=allowed)
    ready = one_cell(running, ready_file)
    name = ask_job(ready, "pick_place", robot)["robot"]
    refuse_real(ready, name, allowed=real)
    ask_job(ready, "enable", name)
    status = ask_job(ready, "start_pick_place", name, max_cycles=cycles)
    if not no_wait:
        status = _watched(ready, robot, status)
    _show(status, json)
    if not no_wait and (status["state"] == "ERROR" or status["reason"] not in GOOD_ENDS):
        raise Exit(1)


def _sends(name: str, command: str, text: str) -> None:
    """Adds a command that sends one of the cell's own, and shows the status of the job."""

    @pick_place.command(name, help=text)
    def send(
        robot: RobotOption = "",
        running: RunningOption = "",
        ready_file: ReadyFileOption = None,
        json: JsonOption = None,
    ) -> None:
        _show(ask_job(one_cell(running, ready_file), command, robot), json)


_sends("status", "pick_place", "Show state, counts and times of the job.")
_sends("stop", "stop_pick_place", "Stop the job: the arm brakes, the hand keeps its part.")
_sends("finish", "finish_pick_place", "Let the job finish its present cycle, then end the run.")
_sends("put-back", "put_back_part", "Put the part of a stopped run back where it was picked.")


@pick_place.command()
def reset(
    robot: RobotOption = "",
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    json: JsonOption = None,
) -> None:
    """Clear the fault of the job, and enable the drives. The hand keeps its part.

    After an emergency stop reset the robot first: `understudy ctl reset`.
    """
    ready = one_cell(running, ready_file)
    name = ask_job(ready, "pick_place", robot)["robot"]
    ask_job(ready, "enable", name)
    _show(ask_job(ready, "reset_pick_place", name), json)


# ── headless ────────────────────────────────────────────────────────────────────────────────────


def _run_headless(
    cell: str,
    robot: str,
    cycles: int,
    seed: int | None,
    most_s: float,
    json: str | None,
) -> None:
    from understudy.app.build import with_options
    from understudy.config import load_config
    from understudy.jobs.headless import chosen_robot
    from understudy.jobs.pick_place import CYCLE
    from understudy.jobs.pick_place.headless import run_headless

    config = with_options(load_config(cell, seed=seed), job_options())
    robot = chosen_robot(config, robot, CYCLE)
    compile_for_cell(config)
    summary = run_headless(config, robot=robot, cycles=cycles, most_s=most_s)
    if isinstance(summary, Refused):
        fail(f"{cell}: {summary.reason}")
    if not put_json(json, to_builtins(summary)):
        _show_summary(summary)
    if not summary.passed:
        raise Exit(1)


def _show_summary(summary: "Summary") -> None:
    table = Table(show_header=False)
    rows = {
        "cell": f"{summary.cell}, {summary.robot}",
        "cycles": f"{summary.cycles} ({summary.success} success, {summary.failed} failed)",
        "cycle time": f"mean {summary.mean_s:.2f} s, {summary.shortest_s:.2f}…"
        f"{summary.longest_s:.2f} s",
        "parts per hour": f"{summary.parts_per_hour:.0f}",
        "simulated": f"{summary.simulated_s:.1f} s, in {summary.wall_s:.2f} s",
        "ended": f"{summary.ended} ({summary.state})",
    }
    if summary.by_class:
        counts = (f"{name}: {count}" for name, count in sorted(summary.by_class.items()))
        rows["classes"] = ", ".join(counts)
    if summary.error:
        rows["reason"] = summary.error
    for name, text in rows.items():
        table.add_row(name, escape(printable(text)))
    Console().print(table)


# ── a running cell ──────────────────────────────────────────────────────────────────────────────


def _watched(ready: Ready, robot: str, status: dict[str, Any]) -> dict[str, Any]:
    """The status at the end of the run; prints a line for every cycle."""
    known = status["cycle_count"]
    warn_if_time_stands(ready)
    while status["running"]:
        sleep(LOOK_SECONDS)
        status = result_of(ready, {"do": "pick_place", **({"robot": robot} if robot else {})})
        if status["cycle_count"] != known and not is_quiet():
            known = status["cycle_count"]
            done = f"{status['success_count']} success, {status['fail_count']} failed"
            print(f"cycle {known}: {done}", file=sys.stderr)
    return status


def _show(status: dict[str, Any], json: str | None) -> None:
    if put_json(json, status):
        return
    times = status["statistics"]
    print(
        printable(
            f"{status['robot']}: {status['state']}, {status['cycle_count']} cycles "
            f"({status['success_count']} success, {status['fail_count']} failed), "
            f"mean {times['mean_s']:.2f} s"
        )
    )
    code, why = status["reason"] or status["code"], status["last_error"]
    if text := why if why.startswith(code) else ": ".join(filter(None, (code, why))):
        print(f"  {printable(text)}")
    if status["holding"] and not status["running"]:
        print("  the hand has a part")
