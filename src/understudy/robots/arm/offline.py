"""Offline check of programs for an arm.

Pins, power source and scenario rules are the same parts as in the running cell, on virtual time, so
that a program gets the same inputs and faults offline.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec import structs

from understudy.agenda import ClockState
from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused, located_at, unknown
from understudy.gcode import requests
from understudy.gcode.requests import Request, Spindle
from understudy.motion.dynamics import Payload, with_payload
from understudy.motion.path import Floats, Path
from understudy.motion.plan import Plan
from understudy.motion.stream import ending_at
from understudy.offline.robot import NO_RULES, Arm, OfflinePins, Subject, collision_notes, rules_of
from understudy.offline.setup import (
    ARC_LEFT_ON,
    NO_TOUCH,
    Delay,
    Mover,
    ProbeResult,
    Remark,
    Setup,
    TimedOutput,
)
from understudy.offline.shared_pins import InputWait, SharedPins
from understudy.offline.walk import Event, spans_of, walk
from understudy.ports import Deps, FaultSource
from understudy.ports.device import (
    DeviceEvent,
    FollowsTool,
    HasFindings,
    LeavesTrail,
    Mount,
    Process,
    ReportsEvents,
    SparesTrail,
    build_devices,
    offline_devices,
    program_wait_s,
)
from understudy.ports.faults import Faults
from understudy.ports.io import PinChange
from understudy.ports.jobs import mode_at_start
from understudy.ports.modes import OperationMode, arc_refusal, speed_limit
from understudy.ports.tools import ChangesTools
from understudy.robots.arm import FAULTS, Config
from understudy.robots.arm.assembly import ArmTools, body_of, detector_of, foot_of
from understudy.robots.arm.assembly import arm_of as drives_of
from understudy.robots.arm.drives import ARC_START, GAS
from understudy.robots.arm.drives import Arm as Drives
from understudy.robots.arm.mover import ArmMover, ContactProbe
from understudy.simulation import scenario
from understudy.simulation.collision.body import Body
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.simulation.scenario import Config as Rules
from understudy.simulation.scenario import build
from understudy.simulation.workpieces.workpieces import WorkpieceStage
from understudy.space.collision.sweep import Sweeper
from understudy.space.model.environment import Environment, Read
from understudy.space.model.shapes import CollisionObject
from understudy.space.pose import ORIGIN, Pose
from understudy.space.transform import pose
from understudy.units import MM, NS_PER_MS, nanoseconds, seconds, whole_ns

if TYPE_CHECKING:
    from understudy.space.collision.detector import NearestObject

COLD = NS_PER_MS
"""The longest time without an arc before a seam is reported as cold."""
NO_GAS = "the arc is started with the gas closed"
TOUCHES = "the probe already touches something before the move"
NO_TOUCH_YET = "the probe touches nothing before a move away from contact"
NO_ARC = "moves along the seam without an arc"
ARC_LOOKS = 9
"""Places of a line where the distance of the arc is looked at."""
RAPID_ARC = "the arc stays on during a rapid"


@dataclass(frozen=True, slots=True, eq=False)
class ArmSurroundings:
    """The body of the arm, and the objects around it during a whole program."""

    body: Body
    environment: Environment


class ArmDevices:
    """`OfflineDevices` of one arm; the scenario rules of the arm act on it.

    If ``around`` is None, a probe touches nothing. ``mode``: of operation; it may lock the arc.
    ``shared``: what other robots bring to its inputs.
    """

    def __init__(
        self,
        name: str,
        config: Config,
        devices: Mapping[str, Any],
        rules: Rules,
        seed: int,
        around: ArmSurroundings | None = None,
        mode: OperationMode = "WELDING",
        shared: SharedPins | None = None,
    ) -> None:
        devices = offline_devices(devices)
        mine = rules_of(rules, (name, *(f"{name}.{kind}" for kind in ("io", *devices))))
        fault_source = build(mine, seed)
        self._pins = pins = OfflinePins(VirtualIO(config.io), mine, f"{name}.io")
        self._arc_wait = config.arc_wait == "implicit"
        self._arc_within = config.arc_within_mm * MM
        self._things = around.environment.objects if around else ()
        self._arc_is_far = False
        self._known_place = [0.0, 0.0, 0.0], math.inf
        """A place of the arc, and its distance from the nearest object."""
        self._plan: Plan | None = None
        self.mover: ArmMover | None = None
        self._armed = self._assumed = self._ended = False
        self._cold: list[tuple[int, int]] = []
        self._cold_since: int | None = 0
        self._reported: dict[str, int] = {}
        self._probe = ContactProbe(around, self) if around else None
        pins.io.on_change(self._pin_changed)
        pins.io.interlock(ARC_START, lambda: arc_refusal(mode))
        self._process: Process | None = None
        self._devices = build_devices(name, devices, self._mount(name, config, fault_source))
        # Looked up once: a Protocol that is checked at run time is slow.
        devices_of = self._devices.items()
        self._follow_tool = [each for _, each in devices_of if isinstance(each, FollowsTool)]
        self._leave_trail = [each for _, each in devices_of if isinstance(each, LeavesTrail)]
        self._spare_trail = [each for _, each in devices_of if isinstance(each, SparesTrail)]
        self._with_findings = {k: each for k, each in devices_of if isinstance(each, HasFindings)}
        for device in self._devices.values():
            if isinstance(device, Process):
                self._process = device
                device.on_process(self._process_changed)
            if isinstance(device, ReportsEvents):
                device.on_event(self._device_event)
            if isinstance(device, SparesTrail):
                device.without_trail()
        self._shared = shared
        if shared is not None:
            shared.join(pins.io)
            pins.join(shared)
        pins.join(*self._devices.values())
        mounted = {f"{name}.{kind}": device for kind, device in self._devices.items()}
        fault_source.act_on({name: self, f"{name}.io": pins.io, **mounted})
        pins.join(fault_source)

    def _mount(self, name: str, config: Config, fault_source: FaultSource) -> Mount:
        return Mount(
            fault_source,
            self._pins.io,
            self._tip_positions,
            robot=name,
            tool_pose=self.tcp,
            tools=ArmTools(config, mounted=lambda now: config.tool, flange=self._flange),
        )

    # ── devices of a walk ──

    def carry_out(self, request: requests.Request, line: int, now: float) -> Delay:
        self._pins.advance_to(whole_ns(now))
        started, remarks = self._pins.now, self._events(line)
        if isinstance(request, requests.Dwell):
            self._pins.advance_to(self._pins.now + nanoseconds(request.seconds))
        elif isinstance(request, requests.Spindle):
            remarks += self._spindle(request, line)
        elif isinstance(request, requests.Coolant):
            self._pins.io.set_digital_output(GAS, request.mist or request.flood, self._pins.now)
        elif isinstance(request, requests.SetOutput | requests.SetAnalog):
            remarks += self._output(request, line)
        elif isinstance(request, requests.WaitInput):
            remarks += self._wait(request, line)
        elif isinstance(request, requests.ToolChange):
            remarks += self._tool_remarks(request, line)
        elif isinstance(request, requests.ProgramEnd):
            remarks += self._end(line)
        remarks += self._events(line)
        return Delay(seconds(self._pins.now - started), tuple(remarks))

    def motion_ended(
        self, plan: Plan, mover: Mover, outputs: Sequence[TimedOutput]
    ) -> tuple[Remark, ...]:
        assert isinstance(mover, ArmMover)
        self._plan, self.mover = plan, mover
        line = int(plan.path.line[-1])
        remarks: list[Remark] = []
        for each in sorted(outputs, key=lambda one: one.time_s):
            self._pins.advance_to(whole_ns(each.time_s))
            remarks += self._output(each.output, each.line)
        self._pins.advance_to(whole_ns(plan.ends))
        for following in self._follow_tool:
            following.catch_up(self._pins.now)
        for leaving in self._leave_trail:
            leaving.clear_trail(self._pins.now)
        self._take_faults()
        remarks += self._arc_remarks(plan)
        return (*remarks, *self._events(line))

    def probe_end(self, probe: requests.Probe, path: Path, mover: Mover) -> ProbeResult:
        assert isinstance(mover, ArmMover)
        contact_probe, self.mover = self._probe, mover
        if contact_probe is not None and len(path):
            if contact_probe.touches(path.shape[0, 0]) == probe.toward:
                return ProbeResult(path.rows(0, 0), TOUCHES if probe.toward else NO_TOUCH_YET)
            place = contact_probe.trigger_place(path, toward=probe.toward)
            if place is not None:
                return ProbeResult(ending_at(path, place))
        return ProbeResult(path, NO_TOUCH if probe.required else "")

    def program_ended(self, line: int, now: float) -> tuple[Remark, ...]:
        self._pins.advance_to(whole_ns(now))
        return tuple(self._events(line) + ([] if self._ended else self._end(line)))

    # ── requests ──

    def _spindle(self, request: requests.Spindle, line: int) -> list[Remark]:
        burns = request.direction != "M5"
        if burns and (locked := self._pins.io.interlocked(ARC_START)):
            return [self._remark(line, "process", f"{request.direction}: {locked.reason}")]
        self._armed, self._ended = burns, False
        if not burns:
            self._assumed = False
        self._pins.io.set_digital_output(ARC_START, burns, self._pins.now)
        if burns and self._process is None and not self._pins.io.digital_output(GAS):
            return [self._remark(line, "process", NO_GAS)]
        refused = self._wait_for_arc(burns) if self._arc_wait else None
        return [self._remark(line, "process", refused.reason)] if refused else []

    def _wait_for_arc(self, burns: bool) -> Refused | None:
        """Why the process cannot be switched on; a fault of its device was already reported."""
        process = self._process
        if process is None:
            return None
        while not (over := process.reached(burns)) and not self._assumed:
            at = self._pins.next_wake()
            if at is None:
                return None
            self._pins.advance_to(at)
            self._take_faults()
        reported = self._assumed or self._pins.events
        return over if isinstance(over, Refused) and not reported else None

    def _output(self, output: requests.Output, line: int) -> list[Remark]:
        refused = self._pins.set_output(output)
        return [self._remark(line, "io", refused.reason)] if refused else []

    def _wait(self, request: requests.WaitInput, line: int) -> list[Remark]:
        of_device = self._pins.io.owner(request.pin) == "device"
        shared = self._shared is not None and request.pin in self._shared.pins
        if self._assumed and of_device and request.kind == "digital" and not shared:
            return []
        began, said = self._pins.now, self._pins.wait(request)
        if self._shared is not None:
            self._shared.waited(InputWait(line, request, began, self._pins.now, bool(said)))
        return [self._remark(line, "io", said)] if said else []

    def _tool_remarks(self, request: requests.ToolChange, line: int) -> list[Remark]:
        """Why a tool changer refuses an M6."""
        changers = (d for d in self._devices.values() if isinstance(d, ChangesTools))
        refusals = (each.confirm_tool(request.tool) for each in changers if request.physical)
        return [self._remark(line, "process", found.reason) for found in refusals if found]

    def _end(self, line: int) -> list[Remark]:
        self._ended = True
        left = self._pins.io.digital_output(ARC_START)
        remarks = [self._remark(line, "process", ARC_LEFT_ON)] if left else []
        self._armed = self._assumed = False
        for pin in (ARC_START, GAS):
            self._pins.io.set_digital_output(pin, False, self._pins.now)
        if self._arc_wait:
            self._wait_for_arc(False)
        return remarks

    # ── remarks ──

    def _arc_remarks(self, plan: Plan) -> list[Remark]:
        """Remarks on feed lines between M3 and M5 without an arc, and on rapids with one."""
        cold, self._cold = self._cold, []
        if self._cold_since is not None:
            cold = [*cold, (self._cold_since, self._pins.now)]
        if not self._armed or self._assumed:
            return []
        rapid = set(plan.path.line[plan.path.rapid].tolist())
        wanted = self._pins.io.digital_output(ARC_START)
        spans, out = spans_of(plan), []
        starts, stops = np.array(list(spans.values())).reshape(-1, 2).T
        looks = np.linspace(starts, stops, ARC_LOOKS, axis=1)
        places = self._tip_positions(looks.reshape(-1)).reshape(*looks.shape, 3)
        for k, (line, (begins, ends)) in enumerate(spans.items()):
            first, last = whole_ns(begins), whole_ns(ends)
            without = [max(a, first) for a, b in cold if min(b, last) - max(a, first) > COLD]
            if line in rapid and wanted and not without:
                out.append(Remark(line, "process", RAPID_ARC, begins))
            elif line not in rapid and without:
                out.append(Remark(line, "process", NO_ARC, seconds(min(without))))
            elif wanted and not without:
                out += self._far_arc(line, looks[k], places[k])
        return out

    @cached_property
    def _nearest(self) -> "NearestObject":
        from understudy.space.collision.detector import NearestObject  # loads compiled code

        return NearestObject(self._things)

    def _far_arc(self, line: int, times: Floats, places: Floats) -> list[Remark]:
        """A warning where the arc begins to burn far from every object: nothing is welded there.
        ``places`` of the tip at some times of the line."""
        if self._process is None or not self._things or not self._arc_within:
            return []
        was_far, self._arc_is_far = self._arc_is_far, False
        for at, tip in zip(times.tolist(), places.tolist(), strict=True):
            near, known = self._known_place
            if known + math.dist(tip, near) <= self._arc_within:
                continue  # it cannot be farther
            known = self._nearest.distance(tip)
            self._known_place = tip, known
            if known > self._arc_within:
                self._arc_is_far = True
                away = f"the arc burns {known / MM:.0f} mm from the nearest object"
                said = f"{away}; up to {self._arc_within / MM:g} mm (arc_within_mm) is near"
                return [] if was_far else [Remark(line, "process", said, at, slight=True)]
        return []

    def _events(self, line: int) -> list[Remark]:
        """Events since the last call, each with the line that was running."""
        self._take_faults()
        events = self._pins.take_events()
        for sparing in self._spare_trail:
            sparing.look_until(self._pins.now)
        for kind, device in self._with_findings.items():
            before = self._reported.get(kind, -1)
            fresh = [(at, said) for at, said in device.findings() if at > before]
            self._reported[kind] = max((at for at, _ in fresh), default=before)
            events += fresh
        return [Remark(self._line(at, line), "process", said, seconds(at)) for at, said in events]

    def _take_faults(self) -> None:
        """Resets a failed process, which was already reported; until M5 it counts as on."""
        if self._process is not None and self._process.failure():
            self._process.reset(self._pins.now)
            self._assumed = True

    def _line(self, at: int, otherwise: int) -> int:
        plan = self._plan
        return (plan.line_at(seconds(at)) if plan else None) or otherwise

    def _remark(self, line: int, kind: Literal["process", "io"], said: str) -> Remark:
        return Remark(line, kind, said, self._pins.seconds())

    # ── listening ──

    def _process_changed(self, now: int) -> None:
        assert self._process is not None
        self._burn(self._process.running, now)

    def _device_event(self, event: DeviceEvent) -> None:
        if event.alarm:
            self._pins.note(event.at, event.alarm)

    def _pin_changed(self, change: PinChange) -> None:
        if self._process is None and change.bank == "DO" and change.pin == ARC_START:
            self._burn(change.value, change.at)

    def _burn(self, burns: bool, now: int) -> None:
        if burns and self._cold_since is not None:
            self._cold.append((self._cold_since, now))
            self._cold_since = None
        elif not burns and self._cold_since is None:
            self._cold_since = now

    def _tip_positions(self, times: Floats) -> Floats:
        if self._plan is None or self.mover is None:
            return np.zeros((len(times), 3))
        return self.mover.chain.tips(self._plan.positions(times), self.mover.frames)

    # ── target of scenario rules ──

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        return self._pins.inject(fault, parameters, now)

    def busy(self) -> bool:
        return self._plan is not None and self._pins.now < whole_ns(self._plan.ends)

    def tcp(self, now: int) -> Pose:
        return self._pose(lambda mover, q: mover.tip(q), now)

    def _flange(self, now: int) -> Pose:
        return self._pose(lambda mover, q: mover.flange(q), now)

    def _pose(self, find: Callable[[ArmMover, Floats], Floats], now: int) -> Pose:
        if self._plan is None or self.mover is None:
            return ORIGIN
        return pose(find(self.mover, self._plan.at(seconds(now)).position))


def arm_setup(
    config: CellConfig,
    robot: str = "",
    dialect: str = "",
    rules: Rules = NO_RULES,
    shared: SharedPins | None = None,
) -> Setup:
    """Mover, pins and devices with which programs of an arm are checked. ``shared``: with those of
    other robots; such a setup is walked on once."""
    name = robot or programmable(config)[0]
    setup = motion_setup(config, name, dialect)
    own: Config = config.robots[name].config
    devices, room = config.robots[name].devices, _around(own, setup, config)
    mode = mode_of(config, name) or "WELDING"
    seed = config.head.seed
    return replace(
        setup,
        devices=lambda: ArmDevices(name, own, devices, rules, seed, room, mode, shared),
    )


def _around(own: Config, setup: Setup, config: CellConfig) -> ArmSurroundings | None:
    """Objects that a probe can touch; None if collision checks are off, as in the running cell."""
    if not own.collision.enable or not isinstance(setup.mover, ArmMover):
        return None
    return ArmSurroundings(body_of(own, setup.mover.chain, config.read_file), config.surroundings())


def arm_subject(program: str, config: CellConfig, robot: str) -> Subject:
    """The arm in its environment, with the shapes of its tools and its limits."""
    own: Config = config.robots[robot].config
    driven = arm_of(config, robot)
    environment = config.surroundings()

    @cache
    def with_tool(tool: int) -> Arm:
        return _placed(own, driven, environment, tool, config.read_file)

    bare = detector_of(own, driven.movers[0].chain, Environment(), 0, config.read_file)
    notes = collision_notes(bare, own.collision, environment)
    start = np.array(driven.start), own.tool
    return Subject(program, config.name, robot, with_tool, environment, notes, start=start)


def _placed(
    own: Config,
    driven: Drives,
    environment: Environment,
    tool: int,
    read: Read,
    held: Sequence[CollisionObject] = (),
) -> Arm:
    """The arm with a tool and held objects in an environment."""
    mover = driven.movers.get(tool, driven.movers[0])
    body = body_of(own, mover.chain, read)
    detector = body.detector(environment, tool, held)
    return Arm(
        chain=mover.chain,
        limits=mover.limits,
        frames=mover.frames,
        foot=foot_of(own),
        detector=detector,
        dynamics=driven.dynamics.get(tool, driven.dynamics[0]),
        sweeper=Sweeper(detector) if own.collision.enable else None,
        tool=tool,
        tool_shapes=body.tools.get(tool, ()),
    )


def motion_setup(config: CellConfig, robot: str = "", dialect: str = "") -> Setup:
    """The setup of a robot without devices; of the first that runs programs if none is named."""
    name = robot or programmable(config)[0]
    waits = _waits(config.robots[name].devices)
    return replace(setup_of_arm(arm_of(config, name, dialect)), switch_seconds=waits)


def setup_of_arm(arm: Drives) -> Setup:
    """The setup of a configured arm, in which switches take no time."""
    return Setup(
        mover=arm.movers[arm.options.modal.tool],
        dialect=arm.options.dialect,
        window=arm.window,
        profile=arm.profile,
        mount=arm.mover,
        modal=arm.options.modal,
        start=arm.start,
        dynamics=arm.dynamics[arm.options.modal.tool],
    )


def _waits(devices: Mapping[str, Any]) -> Callable[[Request], float]:
    """Returns the seconds that M3 and M5 wait for the devices of an arm."""

    def switch_seconds(request: Request) -> float:
        if not isinstance(request, Spindle):
            return 0.0
        return program_wait_s(devices, request.direction != "M5")

    return switch_seconds


def programmable(config: CellConfig) -> list[str]:
    """The robots that run programs, in the order of the cell file; there is at least one."""
    able = [name for name, each in config.robots.items() if hasattr(each.config, "dialect")]
    if not able:
        raise ConfigError(f"no robot of the cell {config.name} runs programs")
    return able


def arm_of(config: CellConfig, robot: str, dialect: str = "") -> Any:
    """The configured arm of a robot that runs programs."""
    if robot not in (able := programmable(config)):
        raise unknown("robot that runs programs", robot, able)
    given = config.robots[robot].config
    own = structs.replace(given, dialect=dialect or given.dialect)
    deps = Deps(scenario.build(Rules(), 0), config.read_file, ClockState())
    with located_at(f"robots.{robot}"):
        arm = drives_of(own, deps)
    mode = mode_of(config, robot)
    return arm if mode is None else arm.limited_to(speed_limit(mode))


def mode_of(config: CellConfig, robot: str) -> OperationMode | None:
    """The mode of operation in which programs are checked; None: the robot has no modes."""
    return mode_at_start(config.robots[robot].sections)


class ArmOffline:
    """`OfflineRobot` of an arm."""

    has_body = True
    obeys_rules = True

    def __init__(self, config: CellConfig, robot: str) -> None:
        self._config = config
        self._robot = robot

    def subject(self, program: str) -> Subject:
        return arm_subject(program, self._config, self._robot)

    def arm_at(self, stage: WorkpieceStage, tool: int) -> Arm:
        """The arm with a tool and what it holds, among the parts that rest around it."""
        own: Config = self._config.robots[self._robot].config
        driven, load = arm_of(self._config, self._robot), stage.load
        bare = _placed(own, driven, stage.environment, tool, self._config.read_file, stage.held)
        if load is None or bare.dynamics is None:
            return bare
        payload = Payload(load.mass, load.com, load.inertia)
        return replace(bare, dynamics=with_payload(bare.dynamics, bare.chain, payload))

    def events(self, text: str | bytes, dialect: str, rules: Rules) -> Iterator[Event]:
        return walk(text, self.setup(dialect, rules))

    def pins(self) -> VirtualIO:
        return VirtualIO(self._config.robots[self._robot].config.io)

    def events_with(
        self, text: str | bytes, dialect: str, rules: Rules, shared: SharedPins
    ) -> Iterator[Event]:
        return walk(text, arm_setup(self._config, self._robot, dialect, rules, shared))

    def setup(self, dialect: str = "", rules: Rules = NO_RULES) -> Setup:
        return arm_setup(self._config, self._robot, dialect, rules)
