"""Command lines without a mistake are read without typer, to the same values."""

import subprocess
import sys
from inspect import Parameter
from random import Random
from typing import Any, Literal, get_args, get_origin

import pytest
from typer.exceptions import TyperException
from typer.main import _normalize_collection_value

from understudy.cli import commands_of, load, parameters
from understudy.cli.parameters import CliCommand
from understudy.errors import ConfigError
from understudy.registry import TABLES

WORDS: tuple[str, ...] = (
    "3",
    "-1",
    "0",
    "70000",
    "2.5",
    "-0.5",
    "1e3",
    "nan",
    "",
    " 5",
    "٣",
    "1_0",
)
WORDS += ("x.yaml", "-", "name", "g60=a.nc", "show", "en", "--", "-q", "-qv", "--nothing", "a=3")
ROUNDS = 60
"""Random command lines for each command."""


def commands() -> dict[str, tuple[CliCommand, Any]]:
    """Every shipped command as it is declared, and as typer has it."""
    found: dict[str, tuple[CliCommand, Any]] = {}
    for name in TABLES["cli"]:
        with_typer = load(name)
        for each, command in commands_of(name).items():
            own = with_typer.commands[each] if each else with_typer
            found[f"{name} {each}".strip()] = (command, own)
    return found


COMMANDS = commands()


def typer_values(command: Any, words: list[str]) -> dict[str, Any] | None:
    """What typer gives the function; None for a mistake."""
    try:
        with command.make_context("", list(words)) as context:
            given = context.params
    except (TyperException, ConfigError):
        return None
    params = {each.name: each for each in command.params}
    return {name: _normalize_collection_value(params[name], given[name]) for name in given}


def random_words(command: CliCommand, chance: Random) -> list[str]:
    """Mostly what a command needs, and some options."""
    own = [each for each in command.parameters if not each.declared.callback]
    words: list[str] = []
    for each in chance.sample(own, len(own)):
        needed = each.default is Parameter.empty
        if chance.random() > (0.95 if needed else 0.15):
            continue
        value = chance.choice(WORDS) if chance.random() < 0.3 else typical(each, chance)
        name = chance.choice(list(each.flags()))
        if not each.is_option:
            words.append(value)
        elif each.is_flag:
            words.append(name)
        else:
            words += [f"{name}={value}"] if chance.random() < 0.3 else [name, value]
    return words


def typical(parameter: parameters.Parameter, chance: Random) -> str:
    if get_origin(parameter.one) is Literal:
        return str(chance.choice(get_args(parameter.one)))
    return "3" if parameter.one in (int, float) else "x.yaml"


@pytest.mark.parametrize("name", COMMANDS)
def test_typer_reads_the_same_values(name: str) -> None:
    command, with_typer = COMMANDS[name]
    chance, read = Random(name), 0
    for _ in range(ROUNDS):
        words = random_words(command, chance)
        if (values := command.read(words)) is not None:
            read += 1
            own = {
                each.name: values[each.name]
                for each in command.parameters
                if each.declared.callback is None
            }
            given = typer_values(with_typer, words)
            assert given == own, words
            assert {each: type(value) for each, value in own.items()} == {
                each: type(value) for each, value in given.items()
            }
    assert read >= ROUNDS / 4, "most of these lines have no mistake"


@pytest.mark.parametrize(
    "words",
    [
        ["--last", "x"],
        ["--last", "0"],
        ["--last"],
        ["--last", "3", "--last", "4"],
        ["--help"],
        ["a", "b"],
        ["--", "a"],
        ["--nothing"],
        ["-qv"],
        ["--unexpected=yes"],
        ["--name", "--last"],
    ],
)
def test_a_line_with_a_doubt_is_left_to_typer(words: list[str]) -> None:
    assert COMMANDS["journal"][0].read(words) is None


def test_typer_is_not_loaded_for_a_line_without_a_mistake() -> None:
    code = (
        "import sys\n"
        "sys.argv = ['understudy', 'check', 'text_robot']\n"
        "from understudy.cli import main\n"
        "code = main()\n"
        "print(code, [name for name in ('typer', 'pydantic') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"
