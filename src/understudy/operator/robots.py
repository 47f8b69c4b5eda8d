"""The robots of a cell as the desk sees them: whose actions, on whose time."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from msgspec.structs import replace

from understudy.config import CellConfig, RobotConfig
from understudy.errors import Refused, unknown
from understudy.operator.bare import StopOnlyActions
from understudy.ports import Part
from understudy.ports.device import Device, LeavesTrail
from understudy.ports.operation import (
    AxisReading,
    Condition,
    OperatorActions,
    RobotModel,
    skills,
)
from understudy.registry import kinds, module_of

if TYPE_CHECKING:
    from understudy.jobs.program_run import ProgramRun

Mode = Literal["SIMULATION", "REAL"]
Outcome = TypeVar("Outcome")
NOT_DURING_PROGRAM = (
    "send_gcode", "jog", "stop_jog", "move_to", "home", "set_tool", "set_tcp",
    "set_joint_positions",
)  # fmt: skip
"""What would come between a program and its robot."""


class Timekeeper(Protocol):
    """Whose time it is: the cell's pump, or that of a line to a real robot."""

    def act(self, deed: Callable[[int], Outcome]) -> Outcome: ...

    def now(self) -> int: ...


@dataclass(frozen=True)
class Side:
    """A robot as it is operated: simulated, or real. `controller`: what the actions are on."""

    controller: Any
    actions: OperatorActions
    time: Timekeeper
    program: "ProgramRun | None" = None

    def in_file(self, error: str) -> str:
        """A controller counts the lines it was sent; who runs a program, those of its file."""
        return self.program.in_file(error) if self.program else error


class Robot:
    """One robot; `real` stands in for its simulated side while a real one is connected."""

    def __init__(
        self, name: str, config: RobotConfig, simulated: Side, devices: Mapping[str, Device]
    ) -> None:
        self.name = name
        self.devices = devices
        self.kind = config.kind
        self.config = config.config
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
        how = side.actions.condition(side.time.now())
        return replace(how, error=side.in_file(how.error))

    def axis_reading(self) -> AxisReading:
        return self.side.actions.axis_reading(self.side.time.now())

    def do(self, verb: str, *arguments: Any) -> Refused | None:
        """What its actions can do; what they cannot is told with what they can."""
        side = self.side
        deed = getattr(side.actions, verb, None)
        if deed is None:
            able = ", ".join(self.skills()) or "nothing but stop"
            return Refused(
                f"{self.name} ({self.kind}, {self.mode}) knows no {verb}; it has: {able}"
            )
        if verb in NOT_DURING_PROGRAM and side.program and side.program.under_way():
            return Refused(f"a program is under way on {self.name}: no {verb} until it ends")
        outcome = side.time.act(lambda now: deed(*arguments, now))
        return outcome if isinstance(outcome, Refused) else None

    def brief(self) -> dict[str, Any]:
        """What every operator's command answers with."""
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
    """By name, in the order of the cell file."""

    def __init__(self, config: CellConfig, parts: Mapping[str, Part], time: Timekeeper) -> None:
        self._robots = {
            name: Robot(name, each, _simulated(name, each.kind, parts, time), _devices(name, parts))
            for name, each in config.robots.items()
        }

    def __iter__(self) -> Iterator[Robot]:
        return iter(self._robots.values())

    def find(self, name: str) -> Robot | Refused:
        if name in self._robots:
            return self._robots[name]
        return Refused(str(unknown("robot", name, self._robots)))

    def do(self, name: str, verb: str, *arguments: Any) -> Any:
        robot = self.find(name)
        if isinstance(robot, Refused):
            return robot
        return robot.do(verb, *arguments) or robot.brief()

    def real(self) -> list[Robot]:
        """Those that are not simulated now."""
        return [robot for robot in self if robot.real is not None]


def _simulated(name: str, kind: str, parts: Mapping[str, Part], time: Timekeeper) -> Side:
    part: Any = parts[name]
    program: Any = parts.get(f"{name}.program")
    return Side(part, actions_for(kind, part), time, program)


def _model(config: RobotConfig, part: Any) -> RobotModel:
    """The model of a simulated robot; a kind that declares none has an empty one."""
    declared = getattr(module_of("robots", config.kind), "robot_model", None)
    model: RobotModel = declared(config.config, part) if declared else RobotModel()
    return model


def _devices(robot: str, parts: Mapping[str, Part]) -> dict[str, Device]:
    """The simulated devices of a robot, by kind."""
    named = ((name.rpartition("."), part) for name, part in parts.items())
    return {
        kind: part
        for (of, _, kind), part in named
        if of == robot and kind in kinds("devices") and isinstance(part, Device)
    }


def actions_for(kind: str, part: Any) -> OperatorActions:
    """The operator actions of a robot; a kind that declares none can be stopped."""
    make = getattr(module_of("robots", kind), "operator_actions", StopOnlyActions)
    found: OperatorActions = make(part)
    return found
