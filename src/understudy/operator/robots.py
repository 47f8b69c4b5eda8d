"""The robots of a cell as they are operated: their actions, simulated or REAL."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Protocol, TypeVar

from msgspec import Meta, to_builtins
from msgspec.structs import replace

from understudy.config import CellConfig, RobotConfig
from understudy.errors import Refused, unknown
from understudy.ports import Component
from understudy.ports.device import Device, LeavesTrail
from understudy.ports.operation import (
    AxisReading,
    Condition,
    Frame,
    OccupiesRobot,
    OperatorActions,
    RobotModel,
    StopsWithRobot,
    Supervised,
    skills,
)
from understudy.ports.refusals import INHIBITED
from understudy.registry import kinds, module_of
from understudy.simulation.engine import SimulationEngine
from understudy.space.pose import ORIGIN

if TYPE_CHECKING:
    from understudy.ports.program import ProgramControl

Number = Annotated[float, Meta(ge=-1e6, le=1e6)]
Six = tuple[Number, Number, Number, Number, Number, Number]
TcpSpeed = Annotated[float, Meta(gt=0, le=10_000)]
Mode = Literal["SIMULATION", "REAL"]
Outcome = TypeVar("Outcome")
Job = TypeVar("Job")
CellTime = Callable[[int], int]
NOT_DURING_PROGRAM = (
    "send_gcode",
    "jog",
    "stop_jog",
    "move_to",
    "follow_joints",
    "home",
    "set_tool",
    "set_tcp",
    "set_tcp_of",
    "set_work_offsets",
    "set_joint_positions",
)
"""Actions that are refused while a program is running."""
MOVES = ("send_gcode", "jog", "move_to", "follow_joints", "home", "cycle_start", "run_program")
"""Actions that may move a robot: refused while the cell is stopped."""
HOW_TO = Refused("give either joints_deg or pose_mm_deg")
NO_EMERGENCY_STOP = Refused("this robot has no emergency stop")


class TimeSource(Protocol):
    """The time of a robot: the cell's, or wall time for a REAL one."""

    def act(self, action: Callable[[int], Outcome]) -> Outcome: ...

    def now(self) -> int: ...


@dataclass(frozen=True)
class Side:
    """The simulated or the REAL robot. `controller`: the part or driver that its actions use.
    `jobs`, `devices`: of a REAL robot, by kind; `lacks`: why it has not all of them."""

    controller: Any
    actions: OperatorActions
    time: TimeSource
    program: "ProgramControl | None" = None
    jobs: Mapping[str, Any] = field(default_factory=dict)
    devices: Mapping[str, Device] = field(default_factory=dict)
    lacks: Refused | None = None

    def in_file(self, error: str) -> str:
        """An error text with the controller's line numbers as those of the program's file."""
        return self.program.in_file(error) if self.program else error

    def line(self, now: int, own: int) -> int:
        """The line of the program's file; 0 if no program runs. `own`: of a robot without one."""
        if self.program is None:
            return own
        return self.program.reading(now).line if self.program.under_way() else 0


class Robot:
    """A robot of the cell. `real`: its REAL side, None in SIMULATION; it is operated if present."""

    def __init__(
        self,
        name: str,
        config: RobotConfig,
        simulated: Side,
        devices: Mapping[str, Device],
        cell_stopped: Callable[[], bool],
        jobs: Collection[OccupiesRobot] = (),
    ) -> None:
        self.name = name
        self._jobs = jobs
        self._cell_stopped = cell_stopped
        self.devices = devices
        self.kind = config.kind
        self.config = config.config
        self.shared_endpoints: Collection[str] = getattr(
            module_of("robots", config.kind), "GROUP_FACES", ()
        )
        self.place = config.real
        self.simulated = simulated
        self.model = _model(config, simulated.controller)
        self.real: Side | None = None

    @property
    def side(self) -> Side:
        return self.real or self.simulated

    @property
    def mode(self) -> Mode:
        return "REAL" if self.real else "SIMULATION"

    def skills(self) -> tuple[str, ...]:
        found = list(skills(self.side.actions))
        found += self.devices
        trails = any(isinstance(each, LeavesTrail) for each in self.devices.values())
        found += ["trail"] if trails else []
        return (*found, "program") if self.side.program else tuple(found)

    def condition(self) -> Condition:
        side = self.side
        now = side.time.now()
        how = side.actions.condition(now)
        return replace(how, error=side.in_file(how.error), line=side.line(now, how.line))

    def under_way(self) -> bool:
        """Whether the robot moves, or runs a program."""
        program = self.side.program
        return self.condition().moving or (program is not None and program.under_way())

    def axis_reading(self) -> AxisReading:
        return self.side.actions.axis_reading(self.side.time.now())

    def do(self, action: str, *arguments: Any) -> Refused | None:
        """Runs an operator action now; refused if the robot does not have it."""
        side = self.side
        run = getattr(side.actions, action, None)
        if run is None:
            able = ", ".join(self.skills()) or "only stop and reset"
            return Refused(
                f"{self.name} ({self.kind}, {self.mode}) knows no {action}; it has: {able}"
            )
        if refused := self.motion_refusal(action):
            return refused
        if action in NOT_DURING_PROGRAM and side.program and side.program.under_way():
            return Refused(f"a program is running on {self.name}: no {action} until it ends")
        if action == "stop":
            self.end_program()
            self.end_jobs()
        outcome = side.time.act(lambda now: run(*arguments, now))
        return outcome if isinstance(outcome, Refused) else None

    def end_program(self) -> None:
        """A program that runs ends as stopped by the operator, not as failed."""
        program = self.side.program
        if program is not None and program.under_way():
            self.side.time.act(program.stop)

    def end_jobs(self) -> None:
        """A job that moves the robot ends as stopped by the operator, not as failed."""
        for job in self._moving_jobs():
            if isinstance(job, StopsWithRobot):
                self.side.time.act(job.stop)

    def motion_refusal(self, action: str) -> Refused | None:
        """Why this action is refused: the cell is stopped, or a job moves the robot. A hold of the
        robot is ended by cycle_start also while a job runs."""
        if action in MOVES and self._cell_stopped():
            return INHIBITED
        starts_motion = action in (*MOVES, *NOT_DURING_PROGRAM) and action != "cycle_start"
        return self.job_refusal() if starts_motion else None

    def job_refusal(self) -> Refused | None:
        """Why an operator cannot use the robot now: a job does."""
        now = self.side.time.now()
        return next(filter(None, (job.occupied(now) for job in self._moving_jobs())), None)

    def real_job(self, kind: type, name: str = "") -> Any:
        """The job or device of this kind of the REAL robot, and with this end of its name; why it
        has none; None in SIMULATION."""
        if self.real is None:
            return None
        for own, each in {**self.real.jobs, **self.real.devices}.items():
            if isinstance(each, kind) and f".{own}".endswith(name):
                return each
        only = Refused(f"{self.name} is REAL: this job runs in simulation only")
        return self.real.lacks or only

    def side_of(self, job: Any) -> Side:
        """The side that a job moves."""
        if self.real is None:
            return self.simulated
        ours = {**self.real.jobs, **self.real.devices}.values()
        return self.real if any(job is each for each in ours) else self.simulated

    def _moving_jobs(self) -> Collection[OccupiesRobot]:
        if self.real is None:
            return self._jobs
        return [job for job in self.real.jobs.values() if isinstance(job, OccupiesRobot)]

    def summary(self) -> dict[str, Any]:
        """The answer of every command that acts on the robot."""
        how = self.condition()
        return {
            "robot": self.name,
            "mode": self.mode,
            "state": how.state,
            "moving": how.moving,
            "enabled": how.enabled,
            "error": how.error,
        }


class Robots:
    """The robots of a cell by name, in the order of the cell file."""

    def __init__(
        self, config: CellConfig, components: Mapping[str, Component], time: TimeSource
    ) -> None:
        engine = components["engine"]
        assert isinstance(engine, SimulationEngine)
        self.components = components_by_robot(components)
        """The parts of each robot: itself, and those whose names begin with its own."""
        self._robots = {
            name: Robot(
                name,
                each,
                _simulated(name, each.kind, components, time),
                _devices(name, self.components[name]),
                lambda: engine.stopped,
                [
                    component
                    for component in self.components[name].values()
                    if isinstance(component, OccupiesRobot)
                ],
            )
            for name, each in config.robots.items()
        }
        self._on_real: list[Callable[[Robot], None]] = []

    def __iter__(self) -> Iterator[Robot]:
        return iter(self._robots.values())

    def find(self, name: str) -> Robot | Refused:
        if name in self._robots:
            return self._robots[name]
        return Refused(str(unknown("robot", name, self._robots)))

    def do(self, name: str, action: str, *arguments: Any) -> Any:
        """Runs an operator action of a robot; its summary, or why it was refused."""
        robot = self.find(name)
        if isinstance(robot, Refused):
            return robot
        return robot.do(action, *arguments) or robot.summary()

    def make_real(self, robot: Robot, side: Side) -> None:
        robot.real = side
        for listener in self._on_real:
            listener(robot)

    def on_real(self, listener: Callable[[Robot], None]) -> None:
        """Calls the listener with every robot that becomes REAL."""
        self._on_real.append(listener)

    def real(self) -> list[Robot]:
        """The robots that are REAL now."""
        return [robot for robot in self if robot.real is not None]


class Jobs(Generic[Job]):
    """The jobs of one kind in a cell. Acts on the job of a robot at the time of the cell; of a REAL
    robot that has such a job, at its own. ``noun``: the kind in words; ``name``: the end of the
    component's name, where a robot has several of the kind."""

    def __init__(self, robots: Robots, kind: type[Job], noun: str, *, name: str = "") -> None:
        self._robots = robots
        self._kind = kind
        self._noun = noun
        self._name = name

    def __bool__(self) -> bool:
        return bool(self.all())

    def all(self) -> dict[str, Job]:
        """The simulated jobs, by robot."""
        found = ((robot.name, self._of(robot)) for robot in self._robots)
        return {name: job for name, job in found if job is not None}

    def find(self, robot_name: str) -> tuple[Robot, Job] | Refused:
        """A robot and its job; without a name, of the only robot that has one."""
        able = self.all()
        if not robot_name and len(able) == 1:
            robot_name = next(iter(able))
        if not robot_name and able:
            return Refused(f"robot: several have {self._noun}: {', '.join(able)}")
        if not robot_name:
            return Refused(f"no robot of this cell has {self._noun}")
        robot = self._robots.find(robot_name)
        if isinstance(robot, Refused):
            return robot
        if robot.name not in able:
            there = f"robots of this cell that have it: {', '.join(able) or 'none'}"
            return Refused(f"{robot.name} has no {self._noun}; {there}")
        real = robot.real_job(self._kind, self._name)
        return robot, able[robot.name] if isinstance(real, Refused | None) else real

    def act(self, robot_name: str, action: Callable[[Job, int], Refused | None]) -> Any:
        """Acts on a job; its status, or why it was refused."""
        found = self.find(robot_name)
        if isinstance(found, Refused):
            return found
        robot, job = found
        if isinstance(real := robot.real_job(self._kind, self._name), Refused):
            return real
        refused = robot.side_of(job).time.act(lambda now: action(job, now))
        return refused if isinstance(refused, Refused) else _status(robot, job)

    def act_at_rest(
        self, robot_name: str, action: Callable[[Job, int], Refused | None], why: str
    ) -> Any:
        """As `act`, for what starts a motion; ``why`` its robot must be at rest."""

        def start(robot: Robot, job: Job) -> Any:
            if robot.under_way():
                return Refused(f"{robot.name} is under way: {why}")
            return robot.motion_refusal("move_to") or self.act(robot.name, action)

        return self.ask(robot_name, start)

    def ask(self, robot_name: str, question: Callable[[Robot, Job], Any]) -> Any:
        """The answer to a question about a robot and its job, or why there is none."""
        found = self.find(robot_name)
        return found if isinstance(found, Refused) else question(*found)

    def look(self, robot_name: str) -> Any:
        """The status of a job."""
        return self.ask(robot_name, _status)

    def each(self, listener: Callable[[str, Job, CellTime], None]) -> None:
        """Calls the listener with the robot, the job and the time of the cell for a time of the
        job: for every simulated one now, and for that of every robot that becomes REAL."""

        def joined(robot: Robot) -> None:
            job = robot.real_job(self._kind, self._name)
            if not isinstance(job, Refused | None):
                listener(robot.name, job, lambda at: robot.simulated.time.now())

        for name, job in self.all().items():
            listener(name, job, lambda at: at)
        self._robots.on_real(joined)

    def _of(self, robot: Robot) -> Job | None:
        for name, each in self._robots.components[robot.name].items():
            if isinstance(each, self._kind) and name.endswith(self._name):
                return each
        return None


def _status(robot: Robot, job: Any) -> dict[str, Any]:
    status = robot.side_of(job).time.act(job.status)
    return {"robot": robot.name, **to_builtins(status)}


def components_by_robot(components: Mapping[str, Component]) -> dict[str, dict[str, Component]]:
    """The parts of a cell by the first word of their names: `g60.welder` belongs to `g60`."""
    found: dict[str, dict[str, Component]] = {}
    for name, component in components.items():
        found.setdefault(name.partition(".")[0], {})[name] = component
    return found


def _simulated(name: str, kind: str, components: Mapping[str, Component], time: TimeSource) -> Side:
    component: Any = components[name]
    program: Any = components.get(f"{name}.program")
    return Side(component, actions_for(kind, component), time, program)


def _model(config: RobotConfig, component: Any) -> RobotModel:
    """The model of a simulated robot; a kind that declares none has an empty one."""
    declared = getattr(module_of("robots", config.kind), "robot_model", None)
    model: RobotModel = declared(config.config, component) if declared else RobotModel()
    return model


def _devices(robot: str, components: Mapping[str, Component]) -> dict[str, Device]:
    """The simulated devices of a robot, by kind; ``parts``: those of the robot."""
    named = ((name.rpartition("."), component) for name, component in components.items())
    return {
        kind: component
        for (of, _, kind), component in named
        if of == robot and kind in kinds("devices") and isinstance(component, Device)
    }


def actions_for(kind: str, component: Any) -> OperatorActions:
    """The operator actions of a robot; a kind that declares none can be stopped."""
    make = getattr(module_of("robots", kind), "operator_actions", StopOnlyActions)
    found: OperatorActions = make(component)
    return found


class StopOnlyActions:
    """`OperatorActions` of a robot whose kind declares none, through its emergency stop."""

    frames: tuple[Frame, ...] = ()

    def __init__(self, component: Any) -> None:
        self._component = component

    def condition(self, now: int) -> Condition:
        state = getattr(self._component.status(now), "state", "")
        return Condition(state=str(state), moving=bool(self._component.busy()))

    def axis_reading(self, now: int) -> AxisReading:
        return AxisReading((), (), (), ORIGIN)

    def stop(self, now: int) -> Refused | None:
        return self.emergency_stop(now)

    def emergency_stop(self, now: int) -> Refused | None:
        return self._inject("emergency_stop", now)

    def reset(self, now: int) -> Refused | None:
        if isinstance(self._component, Supervised):
            outcome = self._component.reset(now)
            return outcome if isinstance(outcome, Refused) else None
        return self._inject("emergency_release", now)

    def _inject(self, fault: str, now: int) -> Refused | None:
        if fault not in self._component.faults():
            return NO_EMERGENCY_STOP
        refused: Refused | None = self._component.inject(fault, {}, now)
        return refused
