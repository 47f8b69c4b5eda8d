"""The Protocols of a device, which belongs to a robot or to the cell.

A module in the table `registry.DEVICES` offers

    Config                       the keys of the device in a cell file, a frozen msgspec Struct
    build(name, config, mount)   the simulated `Device`
    build_real(name, config, pins)    the `Device` of a REAL robot, where it can have one; ``pins``:
                                 of its controller (`ports.io.PollsInputs`), or None
    FAULTS                       its faults, where it has any
    OPERATION_MODES              modes of operation of a robot that carries it, where it adds any
    USES_WORKPIECES              True if it takes hold of parts of the cell
    program_wait_s(config, on)   seconds for which M3 (on) and M5 (off) wait, where they wait

A `Device` must offer the methods of that Protocol only. Each of the other Protocols is optional:
a device that implements one appears in the panels, the plots, the event log, the scene, the
programs or the offline check, and no list of kinds is extended for it.

The offline check of a program builds the same device on the pins and the time of the check.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ConfigError, Refused, located_at
from understudy.ports import FaultSource, Injectable, TimedComponent
from understudy.ports.hmi import Trailing
from understudy.ports.io import DevicePins, PollsInputs
from understudy.ports.tools import ToolTable
from understudy.ports.workpieces import WorkpiecesInReach
from understudy.registry import module_of
from understudy.space.pose import Pose

Moments = NDArray[np.float64]
ToolPath = Callable[[Moments], NDArray[np.float64]]
"""Times in seconds → positions of the tip of the tool in metres, rows of x, y, z."""
ToolPose = Callable[[int], Pose]
"""A time in ns → the pose of the tool point in the cell."""


# ── what a device is given ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Mount:
    """What a device is built with: the scenario, and the robot's pins and tools, if any.

    `parts`: what a gripper of this `robot` meets. A module with `USES_WORKPIECES = True` gets them
    in every running cell; the offline check of a program has none. `camera`: the camera that the
    section `vision` of the robot describes, in a running cell. `seed`: of the cell.
    `has_real`: the robot has a REAL sibling, and REAL devices belong to that one.
    """

    fault_source: FaultSource
    pins: DevicePins | None = None
    tool_path: ToolPath | None = None
    robot: str = ""
    tool_pose: ToolPose | None = None
    parts: WorkpiecesInReach | None = None
    tools: ToolTable | None = None
    camera: Callable[[], Any] | None = None
    seed: int = 0
    has_real: bool = False

    def needed_pins(self) -> DevicePins:
        if self.pins is None:
            raise ConfigError("this device needs the pins of a robot; mount it on one that has any")
        return self.pins

    def needed_tool_path(self) -> ToolPath:
        if self.tool_path is None:
            raise ConfigError("this device needs a robot that moves a tool; mount it on an arm")
        return self.tool_path

    def needed_tools(self) -> ToolTable:
        if self.tools is None:
            raise ConfigError("this device needs the tools of an arm; mount it on one")
        return self.tools


# ── what every device offers ────────────────────────────────────────────────────────────────────


@runtime_checkable
class Device(TimedComponent, Injectable, Protocol):
    """A part of the cell with faults that a reset clears."""

    def reset(self, now: int) -> None:
        """Clears faults and their causes."""
        ...

    def active_faults(self) -> Sequence[str]:
        """The faults that are active now, in the words of their alarms."""
        ...


@runtime_checkable
class CarriesDevices(Protocol):
    """A robot that is notified of the devices mounted on it."""

    def mount(self, kind: str, device: Device) -> None: ...


# ── what a device may offer ─────────────────────────────────────────────────────────────────────


class DeviceEvent(NamedTuple):
    """Something that the event log records; with `alarm` it is an alarm with that message."""

    at: int
    text: str
    alarm: str = ""


@runtime_checkable
class CountsUse(Protocol):
    """A device with counters, which count from zero after a reset of the cell."""

    def zero_counters(self, now: int) -> None: ...


@runtime_checkable
class ReportsEvents(Protocol):
    """A device whose events appear in the event log under its kind."""

    def on_event(self, listener: Callable[[DeviceEvent], None]) -> None: ...

    def advice(self, message: str) -> str:
        """What to do about an alarm of this device; empty if the message is not one of its own."""
        ...


class DeviceAction(NamedTuple):
    """A command of a device: `run(now, *values)`, with a number for each of `parameters`.

    `button`: its label on the page; empty if the page has no button for it. `during_job`: False: an
    operator cannot give it while a job uses the robot.
    """

    doc: str
    parameters: tuple[str, ...]
    run: Callable[..., Refused | None]
    button: str = ""
    during_job: bool = True


@runtime_checkable
class HasActions(Protocol):
    """A device with commands of its own, which control, REST and page offer by their names."""

    def actions(self) -> Mapping[str, DeviceAction]: ...


class PlotRow(NamedTuple):
    """A curve of the plots: a value over time."""

    name: str
    unit: str
    value: Callable[[int], float]


@runtime_checkable
class Plotted(Protocol):
    """A device with curves in the plots."""

    def plots(self) -> Sequence[PlotRow]: ...


@runtime_checkable
class LeavesTrail(Trailing, Protocol):
    """A device that draws a trail where its tool has worked."""

    def clear_trail(self, now: int) -> None: ...


@runtime_checkable
class SparesTrail(Protocol):
    """A device that needs less work without its trail."""

    def without_trail(self) -> None:
        """Draws no trail from now on. What it finds is the same, perhaps later."""
        ...

    def look_until(self, now: int) -> None:
        """Finds what it would have found by now with a trail."""
        ...


@runtime_checkable
class LightsTool(Protocol):
    """A device that makes the tip of the tool glow while it is on."""

    @property
    def lit(self) -> bool: ...


class SceneBody(NamedTuple):
    """A shape in the scene: its centre in the cell and its sizes, in metres."""

    name: str
    type: Literal["box", "sphere", "cylinder", "capsule"]
    position: tuple[float, float, float]
    dimensions: tuple[float, float, float] = (0.0, 0.0, 0.0)
    radius: float = 0.0
    height: float = 0.0


@runtime_checkable
class HasBodies(Protocol):
    """A device that the scene shows; robots do not collide with it."""

    def bodies(self) -> Sequence[SceneBody]: ...


class FingerFacts(NamedTuple):
    """Two fingers as the scene draws them: the axis of the tool along which they move, the widest
    opening, and width and height of a pad, in metres."""

    axis: Literal["x", "y"]
    widest: float
    pad: tuple[float, float]


@runtime_checkable
class HasFingers(Protocol):
    """A device whose fingers the scene moves."""

    def fingers(self) -> FingerFacts | None:
        """None if it has no fingers."""
        ...

    def opening(self, now: int) -> float:
        """The distance between the fingers, in metres."""
        ...


@runtime_checkable
class SeesCell(Protocol):
    """A device that sees the cell: a camera. `starting`: requests of clients for pictures wait."""

    starting: bool

    def see(
        self,
        environment: Any,
        workpieces: Any,
        robots: Mapping[str, Any],
        components: Mapping[str, Any],
    ) -> None:
        """Called once before the start: the `CellEnvironment`, the `Workpieces` (None: none), the
        robots and all components by their names."""
        ...

    def prepare(self) -> Iterator[None]:
        """Loads in steps the compiled code of the first picture; the state does not change."""
        ...


class Preview(NamedTuple):
    """A picture for a person: (height, width, 3) of 8 bits. Of a depth image also the distances
    that are shown as white and as black, in metres."""

    picture: NDArray[np.uint8]
    nearest: float = 0.0
    farthest: float = 0.0


@runtime_checkable
class MayBeReal(Protocol):
    """Settings of a device that may be a REAL one."""

    def simulated(self) -> Self:
        """The same device, simulated."""
        ...


@runtime_checkable
class SizesPictures(Protocol):
    """Settings of a device whose pictures have the size that its robot wants, unless they have
    one of their own."""

    def check_size(self, width_px: int, height_px: int) -> None:
        """Raises ConfigError, with the key of the section, for a size that it may not have."""
        ...


@runtime_checkable
class ShowsPicture(Protocol):
    """A device that sees the cell and shows it to people."""

    def preview(self, now: int, width: int, *, depth: bool) -> Callable[[], Preview] | Refused:
        """What it sees now. The returned function makes the picture, in any thread."""
        ...


@runtime_checkable
class FollowsTool(Protocol):
    """A device that reads the path of the tool."""

    def catch_up(self, now: int) -> None:
        """Reads the path up to ``now``: the robot is about to drop it."""
        ...


@runtime_checkable
class Process(Device, Protocol):
    """A device that M3, M4 and M5 switch on and off, and that programs wait for."""

    @property
    def running(self) -> bool:
        """The tool works: a feed move is right now, a rapid is not."""
        ...

    def reached(self, on: bool) -> bool | Refused:
        """Whether it is steadily on, or off; a refusal if it cannot be switched on."""
        ...

    def failure(self) -> Refused | None:
        """The fault that ends a running program, as the error of its controller."""
        ...

    def on_process(self, listener: Callable[[int], None]) -> None:
        """Calls ``listener(now)`` when one of the answers above may have changed."""
        ...

    def program_ended(self, now: int) -> None: ...

    def cut(self, now: int) -> None:
        """The drives of the robot have dropped: the process ends at once."""
        ...


@runtime_checkable
class LosesProcess(Protocol):
    """A process that can go out by itself, as an arc does."""

    def lost_at(self) -> tuple[float, float, float] | None:
        """Where the tool was when the last one went out by itself, metres from the robot's base;
        None: it was switched off, or it burns."""
        ...


@runtime_checkable
class NamesSwitches(Protocol):
    """A device with names for what programs switch on."""

    def switch_names(self) -> Mapping[str, str]:
        """G-code words → what they switch on: `M3` → arc."""
        ...


@runtime_checkable
class HasFindings(Protocol):
    """A device with rules for the programs that use it."""

    def findings(self) -> Sequence[tuple[int, str]]:
        """What broke its rules so far, times in ns; the check of a program reports it."""
        ...


# ── building the devices of a robot ───────────────────────────────────────────────────────────────


def build_devices(robot: str, devices: Mapping[str, Any], mount: Mount) -> dict[str, Device]:
    """The devices of a robot by kind, from their configurations; each has the name
    `<robot>.<kind>`."""
    built: dict[str, Device] = {}
    for kind, config in devices.items():
        with located_at(kind):
            built[kind] = module_of("devices", kind).build(f"{robot}.{kind}", config, mount)
    return built


def mount_devices(
    name: str, robot: Any, devices: Mapping[str, Any], cell: Mount
) -> dict[str, Device]:
    """Builds the devices of a robot on its pins and its tool, and mounts them on it. ``cell``: what
    they get of the cell."""
    mount = replace(
        cell,
        pins=getattr(robot, "io", None),
        tool_path=getattr(robot, "tool_path", None),
        robot=name,
        tool_pose=getattr(robot, "tcp", None),
        tools=getattr(robot, "tools", None),
    )
    built = build_devices(name, devices, mount)
    if isinstance(robot, CarriesDevices):
        for kind, device in built.items():
            robot.mount(kind, device)
    return built


def real_devices(
    robot: str,
    devices: Mapping[str, Any],
    pins: PollsInputs | None,
    refuse: Callable[[ConfigError], None],
) -> dict[str, Device]:
    """The devices of a REAL robot by kind: those that can be REAL. ``refuse`` is called with the
    reason for each that cannot be built."""
    built: dict[str, Device] = {}
    for kind, config in devices.items():
        if build_real := getattr(module_of("devices", kind), "build_real", None):
            try:
                built[kind] = build_real(f"{robot}.{kind}", config, pins)
            except ConfigError as problem:
                refuse(problem)
    return built


def program_wait_s(devices: Mapping[str, Any], on: bool) -> float:
    """Seconds that a program waits at M3 (``on``) or M5, without faults."""
    modules = ((module_of("devices", kind), config) for kind, config in devices.items())
    waits = ((getattr(m, "program_wait_s", None), config) for m, config in modules)
    return sum((float(wait(config, on)) for wait, config in waits if wait is not None), 0.0)


def offline_devices(devices: Mapping[str, Any]) -> dict[str, Any]:
    """The devices that the offline check of a program can have: all but those that only a running
    cell has."""
    return {
        kind: config
        for kind, config in devices.items()
        if not getattr(module_of("devices", kind), "ONLY_RUNNING", False)
    }


def uses_workpieces(devices: Mapping[str, Any]) -> bool:
    """Whether one of these devices takes hold of parts of the cell."""
    return any(getattr(module_of("devices", kind), "USES_WORKPIECES", False) for kind in devices)
