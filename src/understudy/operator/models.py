"""The queries `robots` (kind, mode, joints, limits, tools, capabilities) and `devices` (panels),
and the commands that devices declare."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from understudy.config import CellConfig
from understudy.errors import Refused
from understudy.operator.robots import Robot, Robots, TimeSource
from understudy.operator.table import Command, commands_of, query
from understudy.ports import Component, DigitalIO, HasCallers
from understudy.ports.controller import Pins as HasPins
from understudy.ports.device import Device, DeviceAction, HasActions
from understudy.ports.hmi import HasPanel, Pins, RobotView
from understudy.ports.operation import RobotModel
from understudy.simulation.points import Points
from understudy.space.pose import pose_mm_deg
from understudy.units import DEG, MM
from understudy.wire.pump import Pump

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell
    from understudy.space.kinematics.chain import Chain


def commands(cell: "OperatedCell") -> list[Command]:
    robots = RobotQuery(cell.robots, lambda: cell.facts()["endpoints"])
    devices = DeviceCommands(cell.config, cell.robots, cell.components, cell.pump)
    return commands_of(robots) + commands_of(devices) + devices.own()


class RobotQuery:
    """The query `robots`. ``addresses``: of all endpoints of the cell, by their names."""

    def __init__(self, robots: Robots, addresses: Callable[[], Mapping[str, str]]) -> None:
        self._robots = robots
        self._addresses = addresses

    @query()
    def robots(self) -> dict[str, Any]:
        """All robots: kind, mode, joints, limits, tools, capabilities."""
        addresses = self._addresses()
        return {"robots": [facts(robot, addresses) for robot in self._robots]}


def facts(robot: Robot, addresses: Mapping[str, str]) -> dict[str, Any]:
    chain = chain_of(robot)
    joints = [] if isinstance(chain, Refused) else joints_of(chain)
    how = robot.condition()
    return {
        "name": robot.name,
        "kind": robot.kind,
        "model": getattr(robot.config, "model", ""),
        "mode": robot.mode,
        "real": str(robot.place or ""),
        "faces": "open" if robot.real is None else "closed while it is REAL",
        "addresses": {
            endpoint: address
            for endpoint, address in addresses.items()
            if endpoint.partition(".")[0] == robot.name or endpoint in robot.shared_endpoints
        },
        "dof": len(joints),
        "joints": joints,
        "tools": tools_of(robot),
        "tool": tool_of(robot),
        "work_offsets_mm_deg": work_offsets_of(robot),
        "capabilities": list(robot.skills()),
        "frames": list(robot.side.actions.frames),
        "overrides_percent": overrides_of(robot),
        "dialect": getattr(robot.config, "dialect", ""),
        "target_line": robot.side.program.target_line if robot.side.program else "",
        "state": how.state,
        "moving": how.moving,
        "connected": how.connected,
        "enabled": how.enabled,
        "error": how.error,
        "code": how.code,
        "waiting_tasks": how.waiting_tasks,
    }


def view_of(robot: Robot) -> RobotView:
    """A REAL robot as pages draw it, from the last report of its controller."""
    how, axis_reading = robot.condition(), robot.axis_reading()
    controller = robot.side.controller
    digital = controller.digital_io() if isinstance(controller, HasPins) else DigitalIO()
    chain = robot.model.chain
    return RobotView(
        q=list(axis_reading.joints),
        tcp=axis_reading.pose,
        state=how.state,
        moving=how.moving,
        tool=tool_of(robot),
        line=how.line,
        io=Pins(digital.inputs, digital.outputs),
        linear=linear_axes(robot.model) if chain is None else chain.linear,
    )


def linear_axes(model: RobotModel) -> tuple[int, ...]:
    """Numbers of the sliding axes of a robot without a chain."""
    return tuple(at for at, axis in enumerate(model.axes) if axis.kind == "prismatic")


def chain_of(robot: Robot) -> "Chain | Refused":
    """The kinematic chain of an arm; a REAL one has that of its simulated sibling."""
    if robot.model.chain is None:
        return Refused(f"{robot.name} ({robot.kind}) is no arm")
    chain: Chain = robot.model.chain
    return chain


def joints_of(chain: "Chain") -> list[dict[str, Any]]:
    units = chain.units
    limits = (chain.lower / units, chain.upper / units, chain.velocity / units)
    columns = (chain.names, chain.unit_names, *limits)
    return [
        {
            "name": name,
            "unit": unit,
            "lower_deg": float(low),
            "upper_deg": float(high),
            "velocity_deg_s": float(fast),
        }
        for name, unit, low, high, fast in zip(*columns, strict=True)
    ]


MOST_AXES = 6
"""Axes of a robot that describes none."""


def units_of(robot: Robot) -> tuple[float, ...]:
    """Size of each joint's unit: a degree in rad, or a millimetre in m if the joint slides."""
    model = robot.model
    if model.chain is not None:
        return tuple(model.chain.units.tolist())
    own = tuple(MM if axis.kind == "prismatic" else DEG for axis in model.axes)
    return own or (DEG,) * MOST_AXES


def figures_of(robot: Robot, values: Iterable[float]) -> list[float]:
    """Values of the joints in deg, or in mm where they slide."""
    return [float(value / unit) for value, unit in zip(values, units_of(robot), strict=False)]


def joints_from(robot: Robot, figures: Iterable[float]) -> tuple[float, ...]:
    """Values of the joints in rad (m), from deg (mm)."""
    return tuple(value * unit for value, unit in zip(figures, units_of(robot), strict=False))


def point_rows(robot: Robot, points: Points) -> list[dict[str, Any]]:
    """The taught points of a robot, in mm and deg."""
    return [
        {
            "name": point.name,
            "joints_deg": figures_of(robot, point.joints),
            "pose_mm_deg": pose_mm_deg(point.pose),
        }
        for point in points.all()
    ]


def tools_of(robot: Robot) -> dict[str, dict[str, Any]]:
    """The tools by number; 0 is the flange."""
    return {
        str(number): {"name": tool.name, "tcp_mm_deg": tool.tcp_mm_deg}
        | ({} if tool.measured is None else {"measured": tool.measured})
        for number, tool in robot.model.tools().items()
    }


def tool_of(robot: Robot) -> int:
    """The number of the active tool."""
    return robot.model.tool(robot.simulated.time.now())


def work_offsets_of(robot: Robot) -> dict[str, list[float]]:
    """G54 … G59.3 that are not zero; those of a REAL controller are not known."""
    if robot.real is not None:
        return {}
    return {name: list(offset) for name, offset in robot.model.work_offsets().items()}


def overrides_of(robot: Robot) -> dict[str, float] | None:
    """Feed and rapid override in percent; those of a REAL controller are not known."""
    if robot.real is not None:
        return None
    overrides = robot.model.overrides(robot.simulated.time.now())
    return None if overrides is None else dict(overrides)


class DeviceCommands:
    """The query `devices` (those with a panel or an active fault) and the devices' own commands."""

    def __init__(
        self, config: CellConfig, robots: Robots, components: Mapping[str, Component], pump: Pump
    ) -> None:
        self._pump = pump
        self._all_robots = robots
        self._kinds = {name: device.kind for name, device in config.devices.items()}
        self._devices = {
            name: component
            for name, component in components.items()
            if isinstance(component, Device)
        }
        self._robots = {
            name: (robot.kind, component)
            for name, robot in config.robots.items()
            if isinstance(component := components[name], HasPanel)
        }

    def own(self) -> list[Command]:
        """The commands that devices declare."""
        names = (
            name
            for device in self._devices.values()
            if isinstance(device, HasActions)
            for name in device.actions()
        )
        return [self._declared(name) for name in dict.fromkeys(names)]

    def _declared(self, name: str) -> Command:
        """A command that devices declare; the parameter `device` chooses one of several."""
        able = {
            owner: device.actions()[name]
            for owner, device in self._devices.items()
            if isinstance(device, HasActions) and name in device.actions()
        }
        first = next(iter(able.values()))
        declare = partial(
            msgspec.defstruct,
            name,
            [("device", str, ""), *((key, float) for key in first.parameters)],
            frozen=True,
            forbid_unknown_fields=True,
            kw_only=True,
        )

        def run(given: Any) -> Any:
            owner = given.device or (next(iter(able)) if len(able) == 1 else "")
            if owner not in able:
                return Refused(f"{name}: device {owner!r}; there are: {', '.join(able)}")
            if refused := self._only_simulated(owner) or self._used_by_job(owner, able[owner]):
                return refused
            values = [getattr(given, key) for key in first.parameters]
            device, time = self._in_use(owner)
            assert isinstance(device, HasActions)
            refused = time.act(lambda now: device.actions()[name].run(now, *values))
            return refused or self._row(owner)

        return Command(name, first.doc, run, declare)

    def _only_simulated(self, name: str) -> Refused | None:
        """Why a command for this device is refused: its robot is REAL, and the device is not."""
        device, robot = self._devices[name], name.partition(".")[0]
        if self._in_use(name)[0] is not device:
            return None
        if isinstance(device, HasCallers) and device.callers():
            return None
        if robot not in [each.name for each in self._all_robots.real()]:
            return None
        return Refused(f"{robot} is REAL and {name} is simulated: the real device would not follow")

    def _in_use(self, name: str) -> tuple[Device, TimeSource]:
        """The device of this name, and its time: that of the REAL robot if it has one."""
        robot = self._all_robots.find(name.partition(".")[0])
        if not isinstance(robot, Refused) and robot.real is not None:
            real = robot.real.devices.get(name.rpartition(".")[2])
            if real is not None:
                return real, robot.real.time
        return self._devices[name], self._pump

    def _used_by_job(self, name: str, action: DeviceAction) -> Refused | None:
        """Why a command for this device is refused: a job of its robot uses it."""
        robot = self._all_robots.find(name.partition(".")[0])
        if action.during_job or isinstance(robot, Refused):
            return None
        return robot.job_refusal()

    @query()
    def devices(self) -> list[dict[str, Any]]:
        """Devices and robots with a panel, or a fault: rows (label, value, unit, state), faults."""
        now = self._pump.now()
        robots = [
            {
                "name": name,
                "kind": kind,
                "panel": component.panel(now),
                "faults": component.active_faults(),
                "buttons": {},
            }
            for name, (kind, component) in self._robots.items()
        ]
        rows = [self._row(name) for name in self._devices]
        return [*robots, *(row for row in rows if row["panel"] or row["faults"])]

    def _row(self, name: str) -> dict[str, Any]:
        device, time = self._in_use(name)
        return {
            "name": name,
            "kind": self._kinds.get(name) or name.rpartition(".")[2],
            "panel": device.panel(time.now()) if isinstance(device, HasPanel) else [],
            "faults": device.active_faults(),
            "buttons": _buttons(device),
        }


def _buttons(device: Device) -> dict[str, str]:
    """Commands without parameters that the page offers, with their labels."""
    actions = device.actions() if isinstance(device, HasActions) else {}
    return {name: action.button for name, action in actions.items() if action.button}
