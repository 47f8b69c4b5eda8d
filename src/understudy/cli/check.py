"""`understudy check`: the configuration of a cell, without running it."""

import asyncio
import sys
from copy import deepcopy
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from understudy.app.live import Live, Options
from understudy.cli.hmi import Keys, missing_extra
from understudy.cli.options import JsonOption, cell_argument, put_json
from understudy.cli.parameters import Exit
from understudy.config import CellConfig, Hmi, Wire
from understudy.config.cell import read_document
from understudy.config.document import Document, parse
from understudy.config.files import find_cell, read_text
from understudy.config.include import read_included
from understudy.errors import ConfigError
from understudy.registry import modules

EVERYWHERE = {"", "0.0.0.0", "::"}


def check(
    cell: Annotated[
        str,
        cell_argument(
            "path of a cell file, of a file it includes, of a robot_config.json or of the "
            "calibration of a camera, or name of a shipped cell"
        ),
    ],
    json: JsonOption = None,
) -> None:
    """Check the configuration of a cell: read it and build the cell, without running it.

    Everything that is wrong is reported at once.
    """
    found = _named_file(Path(cell)) or _included(Path(cell))
    problems: list[ConfigError] = []
    if not found:
        file, text = find_cell(cell)
        config, problems = CellFile(parse(text, file)).checked()
        found = _contents(config) if config else ""
    if len(problems) == 1 and json is None:
        raise problems[0]
    report = {"cell": cell, "valid": not problems, "errors": [_document(p) for p in problems]}
    if not put_json(json, report):
        for problem in problems:
            print(f"error: {problem}", file=sys.stderr)
        print(f"{cell}: {len(problems)} errors" if problems else f"{cell}: {found}")
    if problems:
        raise Exit(2)


def _contents(config: CellConfig) -> str:
    faces = sum(len(robot.faces) for robot in config.robots.values()) + len(config.group_wires)
    return f"valid (robots: {len(config.robots)}, faces: {faces})"


def _document(problem: ConfigError) -> dict[str, Any]:
    return {
        "file": problem.file,
        "line": problem.line,
        "key": problem.key,
        "problem": problem.problem,
        "allowed": problem.allowed,
        "nearest": problem.nearest,
        "message": str(problem),
    }


# ── all errors of a cell file ───────────────────────────────────────────────────────────────────


MOST_PROBLEMS = 50
Place = tuple[str, ...]
"""Keys, and numbers of entries, from the top of the file."""


class CellFile:
    """A cell file that is read again and again: what has an error is left out, until the rest is
    valid. An error that may come from what was left out is not reported."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._value = deepcopy(document.value)
        self._left_out: set[Place] = set()
        self._numbers: dict[Place, list[int]] = {}
        """Of a list with entries left out: the numbers that the others have in the file."""

    def checked(self) -> tuple[CellConfig | None, list[ConfigError]]:
        """What is valid of the cell, and all errors."""
        problems: list[ConfigError] = []
        while len(problems) < MOST_PROBLEMS:
            try:
                config = read_document(replace(self._document, value=self._value))
                asyncio.run(_build_as_run(config))
                _check_ports(config)
            except ConfigError as problem:
                place, known = self._place(problem)
                if not self._may_follow(place, known, problem):
                    problems.append(self._as_in_file(problem, place))
                if known == 0:
                    break
                self._leave_out(place[:known])
            else:
                return config, _in_order(problems)
        return None, _in_order(problems)

    def _place(self, problem: ConfigError) -> tuple[Place, int]:
        """Where the error is, by the present numbers of entries, and how much of that is there.
        Names may have dots, as the texts that join them have."""
        parts, value, place = problem.key.split("."), self._value, list[str]()
        while parts and isinstance(value, dict | list):
            keys = map(str, value if isinstance(value, dict) else range(len(value)))
            fitting = [key for key in keys if parts[: key.count(".") + 1] == key.split(".")]
            if not fitting:
                break
            key = max(fitting, key=len)
            value = value[int(key)] if isinstance(value, list) else _entry(value, key)
            place.append(key)
            parts = parts[key.count(".") + 1 :]
        return (*place, *filter(None, parts)), len(place)

    def _may_follow(self, place: Place, known: int, problem: ConfigError) -> bool:
        """It is about what surrounds something that was left out, or names it."""
        place = self._in_file(place)
        if known < len(place) - 1:  # a thing in there, by its name
            place = place[:known]
        if not place:
            return any(len(each) <= 2 for each in self._left_out)
        named = set(str(problem.value).split("."))
        gone = {each[-1] for each in self._left_out if len(each) == 2}
        return bool(named & gone) or any(each[: len(place)] == place for each in self._left_out)

    def _leave_out(self, place: Place) -> None:
        self._left_out.add(self._in_file(place))
        *around, last = place
        value = self._value
        for key in around:
            value = value[int(key)] if isinstance(value, list) else _entry(value, key)
        if isinstance(value, list):
            file_place = self._in_file(tuple(around))
            numbers = self._numbers.setdefault(file_place, list(range(len(value))))
            del value[int(last)], numbers[int(last)]
        else:
            del value[next(key for key in value if str(key) == last)]

    def _in_file(self, place: Place) -> Place:
        """The same place, by the numbers that entries have in the file."""
        found: Place = ()
        for key in place:
            numbers = self._numbers.get(found)
            is_entry = numbers is not None and key.isdecimal() and int(key) < len(numbers)
            found = (*found, str(numbers[int(key)]) if numbers and is_entry else key)
        return found

    def _as_in_file(self, problem: ConfigError, place: Place) -> ConfigError:
        if problem.file != self._document.file or not problem.key:
            return problem
        bare = ConfigError(
            problem.problem,
            value=problem.value,
            allowed=problem.allowed,
            nearest=problem.nearest,
        )
        return self._document.error(self._in_file(place), bare)


def _in_order(problems: list[ConfigError]) -> list[ConfigError]:
    """The problems by their lines; those of other files last."""
    return sorted(problems, key=lambda each: (not each.line, each.line))


def _entry(value: dict[Any, Any], key: str) -> Any:
    """The value of a key that may be no text in the file (`1: …`)."""
    return next(each for name, each in value.items() if str(name) == key)


def _named_file(file: Path) -> str:
    """Checks a file that a robot or a job of a cell names; empty if none of them knows it."""
    if not file.is_file():
        return ""
    text = read_text(file)
    for _, _, module in chain(modules("robots"), modules("jobs")):
        if hasattr(module, "check_file") and (found := module.check_file(text, str(file))):
            return f"valid as {found}"
    return ""


def _included(file: Path) -> str:
    """Checks a file that cell files include; empty if it is none."""
    if not file.is_file() or (found := read_included(read_text(file), str(file))) is None:
        return ""
    kind, _ = found
    return f"valid as a {kind} file; a cell file uses it by `include: {{{kind}: {file}}}`"


async def _build_as_run(config: CellConfig) -> None:
    """Builds the cell and its endpoints as `run` does, but opens none."""
    page = config.head.hmi
    options = Options(hmi=page is not None and missing_extra() is None, real=True)
    Keys(options.secret, config.head.token).access(page or Hmi())
    Live(config, options)


def _check_ports(config: CellConfig) -> None:
    """Raises a ConfigError if two endpoints listen on the same address; port 0 is a free port."""
    head = config.head
    page: dict[str, Wire | Hmi] = {"state": head.state, "hmi": head.hmi} if head.hmi else {}
    wires: dict[str, Wire | Hmi] = {"control": head.control, **page, **config.endpoints()}
    places: dict[str, tuple[str, int]] = {}
    for endpoint, wire in wires.items():
        host, port = wire.listens_on() or ("", 0)
        if port == 0:
            continue
        host = "127.0.0.1" if host == "localhost" else host
        for other, place in places.items():
            if port == place[1] and (host == place[0] or {host, place[0]} & EVERYWHERE):
                reason = f"{other} and {endpoint} listen on the same port"
                allowed = "another port, or 0 for a free one"
                problem = ConfigError(reason, value=port, allowed=allowed)
                raise config.document.error(_keys(endpoint), problem)
        places[endpoint] = host, port


def _keys(endpoint: str) -> tuple[str, ...]:
    if "." not in endpoint:
        return (endpoint, "port")
    robot, face, *suffix = endpoint.split(".")
    return ("robots", robot, "faces", face, *suffix, "port")
