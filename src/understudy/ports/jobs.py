"""What a job of a robot declares, and what it gets of its cell.

A job works with a robot and what is mounted on it: pick & place, a calibration, changes of tools.
Its module is a row of the table `jobs` (`registry`) and declares

    SECTIONS                keys of a robot in the cell file that belong to the job → Config class
    build(site)             the job's components by name; none if the robot does not ask for it

and, as far as it has them,

    needs(sections)         the Protocols of ports that it works with, for these sections
    check(robot)            raises ConfigError for sections that cannot work together; called for a
                            robot that has one of them
    check_file(text, file)  what a file is that its sections name, for `understudy check`; empty:
                            none of its own; raises ConfigError for one that cannot be used
    files(robot)            section → content of the file that it names, for the digest of the cell
    provide(site, kind, need)   makes one of this Protocol or class for a job; None: not its kind
    build_real(site)        as `build`, for a REAL robot; a refusal says why it cannot work there
    OPTIONS                 option of `load_cell` and `understudy run` → function (config, value)
    without_processes(config)    the cell asking no process: for checks of its work
    answer_questions(cell, config)   answers in this process what its components ask others
    child_processes(live, is_up)     the processes that `understudy run` starts for it
    in_mode(sections, mode, allowed), mode_at_start(sections)   modes of operation
    add_calibrations(group) adds commands of its own to `understudy calibrate`
    offline_check()         what `understudy validate` and `cycle-time` do for it, without a program

Jobs find what they work with by Protocol, never by the name of a device or of another job.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from understudy.errors import ConfigError, Refused
from understudy.ports import Component, FaultSource
from understudy.ports.job_arm import JobArm
from understudy.ports.modes import OperationMode
from understudy.registry import module_of, modules

Wanted = TypeVar("Wanted")


@dataclass(frozen=True)
class JobSections:
    """The sections of jobs that a robot of a cell file has. `sections`: as Config classes; `given`:
    as the file has them. `devices`: configurations of the devices on the robot, by kind. `file`:
    the cell file."""

    robot: str
    file: str
    sections: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    devices: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobSite:
    """A robot for which jobs are built. `controller`: the robot itself. `components`: the devices
    on it and the components of the jobs before, by their names on the robot. `pins`: of its
    controller. `workpieces`: of the cell, None without any. `environment`: objects of the cell
    file. `warn`: writes a line to the log. `real`: it is a REAL robot; `simulated`: the components
    of its simulated sibling, by name."""

    name: str
    file: str
    sections: Mapping[str, Any]
    controller: Any
    make_arm: Callable[[], JobArm]
    fault_source: FaultSource
    warn: Callable[[str], None]
    components: Mapping[str, Any] = field(default_factory=dict)
    pins: Any = None
    workpieces: Any = None
    environment: Callable[[], Sequence[Any]] = tuple
    real: bool = False
    simulated: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def arm(self) -> JobArm:
        return self.make_arm()

    def find(self, kind: type[Wanted]) -> Wanted | None:
        """The first component of the robot that is of this Protocol."""
        return next((each for each in self.components.values() if isinstance(each, kind)), None)

    def find_all(self, kind: type[Wanted]) -> list[Wanted]:
        return [each for each in self.components.values() if isinstance(each, kind)]

    @property
    def tool(self) -> int | None:
        """The number of the tool that jobs work with; None: the mounted one."""
        work = self.offered(WorkTool)
        return None if work is None else work.number

    def provide(self, kind: type[Wanted], need: Any = None) -> Wanted:
        """The component of this kind that another job makes; a ConfigError if none does."""
        found = self.offered(kind, need)
        if found is None:
            raise ConfigError(f"nothing here provides {kind.__name__}", value=self.name)
        return found

    def offered(self, kind: type[Wanted], need: Any = None) -> Wanted | None:
        for _, _, module in modules("jobs"):
            provide = getattr(module, "provide", None)
            if provide is not None and (made := provide(self, kind, need)) is not None:
                found: Wanted = made
                return found
        return None


class WorkTool(Struct, frozen=True):
    """The number of the tool that jobs of a robot work with; None: the mounted one."""

    number: int | None = None


@runtime_checkable
class StartsWhenAllowed(Protocol):
    """A job that asks before it starts: `may_start` says why it must not."""

    may_start: Callable[[int], Refused | None]

    def occupied(self, now: int) -> Refused | None:
        """Why the robot cannot be used now: the job does."""
        ...


class CycleReport(Struct, frozen=True):
    """What a job of cycles has done since its start. `problem`: why its work is not done, empty if
    it is."""

    placed: int
    failed: int
    mean_s: float
    problem: str


@runtime_checkable
class Played(StartsWhenAllowed, Protocol):
    """A job of cycles, which *Play* starts on a robot without a program."""

    def play(self, now: int) -> Refused | None: ...

    def start(self, now: int, *, max_cycles: int = -1) -> Refused | None:
        """-1 cycles: until the job ends by itself."""
        ...

    def is_running(self) -> bool: ...

    def status(self, now: int) -> Any: ...

    def report(self, now: int) -> CycleReport: ...


class ChildProcesses(Protocol):
    """Processes that run beside a live cell, for its jobs."""

    def endpoints(self) -> Sequence[str]:
        """The endpoints that listen when they are ready."""
        ...

    def start(self) -> None: ...

    async def wait(self) -> None:
        """Waits until they answer, or have failed to start."""
        ...

    def check(self) -> None:
        """Raises ConfigError if one of them does not run."""
        ...

    async def stop(self) -> None: ...


def start_only_if(job: StartsWhenAllowed, refusal: Callable[[int], Refused | None]) -> None:
    """Lets a job start only if this has no refusal either."""
    before = job.may_start
    job.may_start = lambda now: before(now) or refusal(now)


def keep_apart(one: StartsWhenAllowed, other: StartsWhenAllowed) -> None:
    """Neither of two jobs of a robot starts while the other one uses it."""
    start_only_if(one, other.occupied)
    before = other.may_start
    other.may_start = lambda now: one.occupied(now) or before(now)


def has_jobs(robot_kind: str) -> bool:
    """Whether jobs can work with robots of this kind."""
    return hasattr(module_of("robots", robot_kind), "job_arm")


def job_sections() -> dict[str, type[Struct]]:
    """The keys of a robot that belong to jobs, with their Config classes."""
    return {key: kind for _, _, module in modules("jobs") for key, kind in module.SECTIONS.items()}


def check_sections(robot: JobSections) -> None:
    """Raises ConfigError for sections of jobs that cannot work together."""
    for _, _, module in modules("jobs"):
        check = getattr(module, "check", None)
        if check is not None and not robot.sections.keys().isdisjoint(module.SECTIONS):
            check(robot)


def without_processes(config: Any) -> Any:
    """The configuration of a cell whose jobs ask no other process."""
    for _, _, module in modules("jobs"):
        if change := getattr(module, "without_processes", None):
            config = change(config)
    return config


def mode_at_start(sections: Mapping[str, Any]) -> OperationMode | None:
    """The mode of operation in which a robot starts; None: it has no modes."""
    asked = (getattr(module, "mode_at_start", None) for _, _, module in modules("jobs"))
    found = (mode_of(sections) for mode_of in asked if mode_of is not None)
    return next((mode for mode in found if mode is not None), None)


def build_jobs(site: JobSite) -> dict[str, Component]:
    """The components of all jobs of a robot, in the order of the table."""
    built: dict[str, Component] = {}
    for _, _, module in modules("jobs"):
        built |= module.build(replace(site, components={**site.components, **built}))
    return built


def build_real_jobs(site: JobSite, refuse: Callable[[ConfigError], None]) -> dict[str, Component]:
    """As `build_jobs`, of a REAL robot: of the jobs that work there. ``refuse`` is called with the
    reason for each that cannot be built."""
    built: dict[str, Component] = {}
    for _, _, module in modules("jobs"):
        if build := getattr(module, "build_real", None):
            try:
                built |= build(replace(site, components={**site.components, **built}))
            except ConfigError as problem:
                refuse(problem)
    return built


def needs_of(sections: Mapping[str, Any]) -> set[type]:
    """The Protocols that the jobs of a robot with these sections work with."""
    asked = (getattr(module, "needs", None) for _, _, module in modules("jobs"))
    return {each for needs in asked if needs is not None for each in needs(sections)}
