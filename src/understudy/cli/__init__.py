"""The command line: one table of commands; a command's module is imported when the command runs.

Exit codes: 0 success, 1 the robot program or check failed, 2 usage or configuration error.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from understudy import __version__
from understudy.errors import ConfigError


class Command(NamedTuple):
    """A row of the table: the function is called as the command, with _ for -.

    `valueless`: an option that may stand without its value.
    """

    module: str
    summary: str
    example: str
    valueless: str = ""


COMMANDS = {
    "run": Command(
        "understudy.cli.run", "Run a live cell.", "run text_robot --rate 10 --ephemeral", "--pty"
    ),
    "validate": Command(
        "understudy.cli.validate",
        "Check programs: syntax, reach, limits, speed, torque, collisions, process, inputs.",
        "validate weld.gcode --cell g60_welding --html report.html",
    ),
    "reach": Command(
        "understudy.cli.reach",
        "Where an arm can bring its tool.",
        "reach --cell g60_welding --out reach.html",
    ),
    "cycle-time": Command(
        "understudy.cli.cycle_time",
        "Cycle time of a program, line by line, without running it.",
        "cycle-time part.nc --settings machine.txt --dialect grblhal",
    ),
    "project": Command(
        "understudy.cli.project",
        "Save and load programs, points, tools and frames of a running cell as a folder.",
        "project save my_project",
    ),
    "check": Command("understudy.cli.check", "Check a cell's configuration.", "check my_cell.yaml"),
    "new": Command("understudy.cli.new", "Write a cell file of your own.", "new my_mill --machine"),
    "cells": Command("understudy.cli.look", "List the shipped cells.", "cells"),
    "robots": Command("understudy.cli.look", "List the shipped arms.", "robots"),
    "faces": Command("understudy.cli.look", "List the wire dialects.", "faces"),
    "faults": Command(
        "understudy.cli.look", "List the faults of scenario rules and `inject`.", "faults"
    ),
    "doctor": Command(
        "understudy.cli.look", "What works here, what is missing, how to get it.", "doctor"
    ),
    "record": Command(
        "understudy.cli.record",
        "Record a client and a REAL controller as a transcript.",
        "record --listen :5000 --to 192.168.0.10:5000 --face text_tcp --out morning.chat",
    ),
    "replay": Command(
        "understudy.cli.replay",
        "Play a transcript against a simulated cell and compare.",
        "replay morning.chat --tolerance 0.2",
    ),
    "status": Command("understudy.cli.status", "Show the running cells.", "status"),
    "stop": Command(
        "understudy.cli.status", "Stop the running cells.", "stop --ready-file ready.json"
    ),
    "ctl": Command(
        "understudy.cli.ctl",
        "Send one command to a running cell.",
        "ctl advance seconds=3 --ready-file ready.json",
    ),
    "send": Command(
        "understudy.cli.send",
        "Send a program to a virtual or real robot.",
        "send grblhal part.nc --to /dev/ttyACM0",
    ),
    "fleet": Command(
        "understudy.robots.mobile.command_line",
        "Send commands and tasks to mobile robots, and watch them.",
        "fleet send robot-1 MOVE_TO_POSE x=2 y=1",
    ),
    "pick-place": Command(
        "understudy.jobs.pick_place.command_line",
        "Run, watch, stop and reset the pick & place job of a robot.",
        "pick-place run --cell pick_place --cycles 10",
    ),
    "vision": Command(
        "understudy.vision.command_line",
        "Run the vision process: pictures in, detected objects out.",
        "vision --camera opencv:0 --hand-eye hand_eye_calib.yaml",
    ),
    "calibrate": Command(
        "understudy.jobs.hand_eye.command_line",
        "Calibrate a camera: its place on the robot (hand-eye), and its intrinsics.",
        "calibrate hand-eye --cell calibration --out hand_eye_calib.yaml --report report.html",
    ),
    "campaign": Command(
        "understudy.cli.campaign",
        "Run a cell with many seeds and values: pass rate, distributions, smallest failures.",
        "campaign weld.yaml --runs 200",
    ),
    "warm": Command("understudy.cli.warm", "Compile the kernels once, at set-up.", "warm"),
}


class LazyCommands(TyperGroup):
    """Lists the table's rows; imports the module of the command that is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A row for the help page; the command itself comes by `resolve_command`."""
        row = COMMANDS.get(cmd_name)
        return None if row is None else TyperCommand(cmd_name, help=row.summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        command = load(str(name))
        rest = with_values(rest, COMMANDS[str(name)].valueless)
        refuse_swallowed_options(command, rest)
        if ctx.obj is not None:
            ctx.obj(name)
        return name, command, rest


def with_values(words: list[str], valueless: str) -> list[str]:
    """The words with an empty value for an option that stands without one.

    Its value is a path with a / or contains =; another word is an argument of the command:
    `run --pty my_cell` runs my_cell.
    """
    options = words[: words.index("--")] if "--" in words else words
    for at, word in enumerate(options):
        value = options[at + 1] if at + 1 < len(options) else ""
        if (
            valueless
            and word == valueless
            and (value.startswith("-") or not {"/", "="} & set(value))
        ):
            words = [*words[:at], f"{word}=", *words[at + 1 :]]
    return words


def refuse_swallowed_options(command: Any, words: list[str]) -> None:
    """Raises a usage error where an option that needs a value is followed by another option:
    `--json --cell g60` would write a file called `--cell`."""
    valued = {
        name
        for option in command.params
        if option.param_type_name == "option" and not option.is_flag and not option.count
        for name in option.opts
    }
    for word, value in pairwise(words):
        if word == "--":
            return
        if word in valued and value.startswith("--"):
            raise typer.BadParameter(f"a value is needed, got the option {value}", param_hint=word)


def load(name: str) -> Any:
    """The command of this name, with its parameters and its help."""
    row = COMMANDS[name]
    function = getattr(import_module(row.module), name.replace("-", "_"))
    if isinstance(function, typer.Typer):  # it has commands of its own
        group = get_command(function)
        group.name, group.epilog = name, f"Example: understudy {row.example}"
        return group
    alone = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown"
    )
    alone.command(name, epilog=f"Example: understudy {row.example}")(function)
    command = get_command(alone)
    if "cell" in function.__annotations__:
        command.params.append(_package_path())
    return command


def _add_package_paths(folders: list[Path] | None) -> None:
    if folders:
        from understudy.config.model_files import add_package_paths

        add_package_paths(folders)


PackagePath = Annotated[
    list[Path] | None,
    typer.Option(
        "--package-path",
        metavar="FOLDER",
        callback=_add_package_paths,
        expose_value=False,
        help="folder with ROS packages, for package:// names in robot descriptions",
    ),
]


def _package_path() -> Any:
    """`--package-path`, an option of every command that reads a cell file."""
    alone = typer.Typer()

    @alone.command()
    def command(package_path: PackagePath = None) -> None:
        """Has the option."""

    return next(each for each in get_command(alone).params if each.name == "package_path")


app = typer.Typer(
    name="understudy",
    cls=LazyCommands,
    help="Simulated robot cells: they answer on the wire as real robots do, and check programs "
    "before a real robot runs them.\n\nExample: understudy run text_robot --rate 10",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def understudy(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="print the version"),
    ] = False,
) -> None:
    pass


def main(loaded: Callable[[str], None] | None = None) -> int:
    """Runs the command line and returns the exit code.

    Calls ``loaded`` with the name of the command when its modules are loaded, before it runs.
    """
    try:
        app(obj=loaded)
    except ConfigError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    return 0
