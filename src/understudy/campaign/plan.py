"""The file of a campaign: which cell is run, how often, with which values, and what must hold.

A run is one cell from its start to the end of its programs and jobs, or for a fixed time. Every
combination of the values in `grid` is a point; each point is run with the same seeds, `seed`,
`seed` + 1, ….
"""

from collections.abc import Collection, Iterator
from itertools import product
from typing import Annotated, Any

import msgspec
import yaml
from msgspec import Meta, Struct, field

from understudy.app.build import build_cell
from understudy.config import CellConfig, read_config
from understudy.config.document import parse
from understudy.config.files import ProgramFile, find_cell, find_program, found_beside, read_text
from understudy.config.include import read_rules
from understudy.config.typed import read
from understudy.errors import ConfigError, unknown
from understudy.ports import WireMessage
from understudy.ports.jobs import Played
from understudy.simulation.cell import Cell
from understudy.simulation.scenario import Config as Rules

MOST_RUNS = 10_000_000
"""Runs of a campaign, all points together."""
LONGEST_S = 3600.0
"""Simulated seconds after which a run without `for_s` has failed."""
POINTS_BUILT = 20
"""Points whose cell is built before the first run, to find mistakes early."""
RUN_ENDS = "for_s, the simulated seconds of a run; or programs, or pick_place"
Seconds = Annotated[float, Meta(gt=0, le=1e7)]
Seed = Annotated[int, Meta(ge=0, lt=1 << 61)]
Text = Annotated[str, Meta(max_length=100_000)]
Cycles = Annotated[int, Meta(ge=-1, le=1_000_000)]


class Check(Struct, frozen=True, forbid_unknown_fields=True):
    """What must hold of a figure at the end of a run; `equals` compares texts, too."""

    at_least: float | None = None
    at_most: float | None = None
    equals: float | str | bool | None = None

    def problem(self, name: str, value: Any) -> str:
        """Why the figure does not hold; empty if it does."""
        if self.equals is not None and value != self.equals:
            return f"{name} is {value}, not {self.equals}"
        if (self.at_least is not None or self.at_most is not None) and not _is_number(value):
            return f"{name} is {value}, which is no number"
        if self.at_least is not None and value < self.at_least:
            return f"{name} is {value:g}, below {self.at_least:g}"
        if self.at_most is not None and value > self.at_most:
            return f"{name} is {value:g}, above {self.at_most:g}"
        return ""


class Words(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that a client sends at a time: bytes of a `text` to an endpoint, or a `message` to
    an address of it."""

    at_s: Annotated[float, Meta(ge=0, le=1e7)]
    to: str
    text: Text | None = None
    address: str | None = None
    message: dict[str, Any] | None = None

    def data(self) -> bytes | WireMessage:
        """What passes the wire."""
        if self.text is not None:
            return self.text.encode()
        return WireMessage(self.address or "", msgspec.json.encode(self.message))


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """A campaign file.

    `programs`: robot → program, `{}`: none; without the key those that the cell file names.
    `cycles`: robot → cycles of its job, -1: until it ends by itself.
    `rules`: scenario rules beside those of the cell. `grid`: key of the cell file → values.
    `figures`: name → key in the status of the cell. `checks`: what must hold of figures. That all
    programs and jobs end well, and without a collision, is checked always unless
    `programs_may_fail` or `may_collide` says otherwise.
    """

    cell: str
    runs: Annotated[int, Meta(ge=1, le=MOST_RUNS)] = 20
    seed: Seed = 0
    for_s: Seconds | None = None
    programs: dict[str, str] | None = None
    cycles: dict[str, Cycles] = field(name="pick_place", default_factory=dict)
    scenario: str | None = None
    rules: dict[str, dict[str, Any]] = {}
    grid: dict[str, Annotated[list[Any], Meta(max_length=1000)]] = {}
    script: Annotated[list[Words], Meta(max_length=10_000)] = []
    figures: dict[str, str] = {}
    checks: dict[str, Check] = {}
    programs_may_fail: bool = False
    may_collide: bool = False

    def points(self) -> list[dict[str, Any]]:
        """All combinations of the grid's values, in the order of the file."""
        return [
            dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())
        ]

    def specs(self) -> "Iterator[RunSpec]":
        for number, point in enumerate(self.points()):
            for index in range(self.runs):
                yield RunSpec(number * self.runs + index, self.seed + index, point)


class RunSpec(Struct, frozen=True):
    """One run. `without`: names of rules that are left out."""

    number: int
    seed: int
    point: dict[str, Any]
    without: tuple[str, ...] = ()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────


class PlanFile(Struct, frozen=True):
    """A plan and the file it comes from: the cell and its files are found beside it."""

    plan: Plan
    file: str

    def cell_text(self) -> tuple[str, str]:
        """The path and the text of the cell file."""
        try:
            return find_cell(str(found_beside(self.file, self.plan.cell)))
        except ConfigError:
            return find_cell(self.plan.cell)

    def config(self, spec: RunSpec) -> CellConfig:
        """The cell of a run: its file with the campaign's rules and the values of the point."""
        file, text = self.cell_text()
        rules = {f"scenario.rules.{name}": rule for name, rule in self.rules().items()}
        if rules or spec.point:
            text = _with_values(text, file, rules | spec.point)
        config = read_config(text, file).with_seed(spec.seed)
        left = {n: r for n, r in config.head.scenario.rules.items() if n not in spec.without}
        return config.with_rules(Rules(left))

    def programs(self, config: CellConfig) -> dict[str, ProgramFile]:
        """The program of each robot that has one."""
        if self.plan.programs is None:
            own = {name: robot.program for name, robot in config.robots.items()}
            return {name: program for name, program in own.items() if program is not None}
        return {
            robot: find_program(name, beside=config.document.file)
            for robot, name in self.plan.programs.items()
        }

    def rules(self) -> dict[str, Any]:
        """The rules of the campaign itself, as they are written."""
        found = dict(self.plan.rules)
        if self.plan.scenario is not None:
            path = found_beside(self.file, self.plan.scenario)
            text = read_text(path)
            read_rules(text, str(path))
            found = {**parse(text, str(path)).value["rules"], **found}
        return found


def read_plan(file: str, text: str) -> PlanFile:
    """A checked campaign: its cell is built once for each of the first points."""
    document = parse(text, file)
    try:
        plan: Plan = read(document.value, Plan)
        _check(plan)
        planned = PlanFile(plan, file)
        for number, point in enumerate(plan.points()[:POINTS_BUILT]):
            config = planned.config(RunSpec(number, plan.seed, point))
            _check_names(plan, config, build_cell(config), planned.programs(config))
            if plan.for_s is None and not (plan.cycles or planned.programs(config)):
                raise ConfigError(
                    "no robot has a program or job: a run would end at once",
                    key="for_s",
                    allowed=RUN_ENDS,
                )
    except ConfigError as problem:
        if problem.file:
            raise
        raise document.error((), problem) from None
    return planned


def _check(plan: Plan) -> None:
    count = plan.runs
    for key, values in plan.grid.items():
        if not values:
            raise ConfigError("no values", key=f"grid.{key}", allowed="one or more")
        count *= len(values)
    if count > MOST_RUNS:
        raise ConfigError("too many runs", key="grid", value=count, allowed=f"up to {MOST_RUNS}")
    for number, words in enumerate(plan.script):
        if (words.text is None) == (words.message is None):
            raise ConfigError("give text or message", key=f"script.{number}")


def job_of(cell: Cell, robot: str) -> Played | None:
    """The job of cycles of a robot."""
    own = (each for name, each in cell.components.items() if name.startswith(f"{robot}."))
    return next((each for each in own if isinstance(each, Played)), None)


def _check_names(plan: Plan, config: CellConfig, cell: Cell, programs: Collection[str]) -> None:
    for number, words in enumerate(plan.script):
        if words.to not in cell.faces:
            raise unknown("endpoint", words.to, cell.faces, key=f"script.{number}.to")
    for robot in plan.programs or ():
        if robot not in config.robots:
            raise unknown("robot", robot, config.robots, key=f"programs.{robot}")
    able = [robot for robot in config.robots if job_of(cell, robot) is not None]
    for robot, cycles in plan.cycles.items():
        key = f"pick_place.{robot}"
        if robot not in able:
            raise unknown("robot with the section `pickplace`", robot, able, key=key)
        if cycles == 0:
            raise ConfigError("no cycles", key=key, value=0, allowed="1 and more, or -1")
        if robot in programs:
            raise ConfigError(
                "the robot has a program and a job",
                key=key,
                allowed="one of them; programs: {} starts no program",
            )


def _with_values(text: str, file: str, point: dict[str, Any]) -> str:
    """The text of a cell file with other values under some keys, `robots.g60.tool`."""
    value = parse(text, file).value
    for key, chosen in point.items():
        *parents, last = key.split(".")
        place = value
        for name in parents:
            if not isinstance(place, dict):
                raise ConfigError("no such place in the cell file", key=f"grid.{key}", value=name)
            place = place.setdefault(name, {})
        if not isinstance(place, dict):
            raise ConfigError("no such place in the cell file", key=f"grid.{key}", value=last)
        place[last] = chosen
    return yaml.safe_dump(value, sort_keys=False)


def replaced(plan: Plan, *, runs: int | None, seed: int | None) -> Plan:
    """The plan with another number of runs or another first seed."""
    given = {"runs": runs, "seed": seed}
    changes = {key: value for key, value in given.items() if value is not None}
    found: Plan = read(msgspec.to_builtins(plan) | changes, Plan)
    _check(found)
    return found
