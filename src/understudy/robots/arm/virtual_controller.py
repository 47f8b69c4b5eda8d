"""A `VirtualController` for a prompt, a notebook or a test.

It is the controller of a cell with a clock of its own, so that no call needs the time. Time passes
only in `advance`, `wait` and `run_until_idle`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct
from numpy.typing import ArrayLike

from understudy.agenda import ClockState
from understudy.app.at_now import AtNow
from understudy.config.cell import device_keys
from understudy.config.contents import contents
from understudy.config.files import read_model
from understudy.config.typed import read
from understudy.errors import ConfigError, Refused
from understudy.offline.setup import Setup
from understudy.ports import (
    AnalogIO,
    ControllerStatus,
    Deps,
    DigitalIO,
    JointState,
    Snapshot,
    Tally,
)
from understudy.ports.device import Device, Mount, mount_devices
from understudy.registry import module_of
from understudy.robots.arm import Config, build
from understudy.robots.arm.assembly import body_of
from understudy.robots.arm.controller import ArmController
from understudy.robots.arm.offline import ArmDevices, ArmSurroundings, setup_of_arm
from understudy.simulation.cell import Cell
from understudy.simulation.collision.contact import CollisionListener, Contact
from understudy.simulation.environment import CellEnvironment
from understudy.simulation.scenario import Config as Rules
from understudy.simulation.scenario import build as fault_source
from understudy.space.given import given_positive, given_row
from understudy.space.model.environment import EnvironmentConfig
from understudy.space.pose import Pose
from understudy.units import DEG, duration_ns, nanoseconds, seconds

JOINTS = 6
IDLE_TIMEOUT = 3600.0
"""Simulated seconds after which `run_until_idle` raises TimeoutError."""


class SimulationConfig(Struct, frozen=True, kw_only=True):
    """The settings of a `VirtualController` in the names and units of the design document: rad/s,
    rad/s², rad/s³, kg·m², Nm·s/rad, ms. Limits that are not given are those of the model."""

    update_rate_hz: float = 1000.0
    time_scale: float = 1.0
    max_velocity: Sequence[float] | None = None
    max_acceleration: Sequence[float] | None = None
    max_jerk: Sequence[float] | None = None
    enable_dynamics: bool = False
    joint_inertia: Sequence[float] | None = None
    joint_friction: Sequence[float] | None = None
    command_delay_ms: float = 1.0
    feedback_delay_ms: float = 0.5

    def __post_init__(self) -> None:
        for name, joints in self._of_joints().items():
            if joints is not None:
                row = given_row(joints, JOINTS, f"SimulationConfig: {name}")
                if not (row >= 0.0).all():
                    raise ValueError(f"SimulationConfig: {name}: no number below 0, got {joints}")
        for name in ("update_rate_hz", "time_scale"):
            given_positive(getattr(self, name), f"SimulationConfig: {name}")

    def _of_joints(self) -> dict[str, Sequence[float] | None]:
        """The settings with a number for each joint."""
        names = ("max_velocity", "max_acceleration", "max_jerk", "joint_inertia", "joint_friction")
        return {name: getattr(self, name) for name in names}

    def settings(self) -> dict[str, Any]:
        """The settings as keys of an arm in a cell file."""
        limits = {
            "max_velocity_deg_s": self.max_velocity,
            "max_acceleration_deg_s2": self.max_acceleration,
            "max_jerk_deg_s3": self.max_jerk,
        }
        simulation = {
            "update_rate_hz": self.update_rate_hz,
            "enable_dynamics": self.enable_dynamics,
            "joint_inertia": _listed(self.joint_inertia),
            "joint_friction": _listed(self.joint_friction),
            "command_delay_ms": self.command_delay_ms,
            "feedback_delay_ms": self.feedback_delay_ms,
        }
        given = {
            key: [float(value) / DEG for value in values]
            for key, values in limits.items()
            if values is not None
        }
        return {**given, "simulation": simulation}


def _listed(values: Sequence[float] | None) -> list[float] | None:
    return None if values is None else [float(value) for value in values]


class VirtualController:
    """An arm's controller on its own virtual time.

    The settings are those of a cell file: ``VirtualController(model="g60", feed_unit="per_second",
    simulation={"update_rate_hz": 100}, welder={})``, and so is the ``environment``; a
    `SimulationConfig` gives the same in the names of the design document. Commands return None, or
    why they were `Refused`. Devices are attributes: ``arm.io.link(0, 0, 50)``,
    ``arm.welder.status()``.
    """

    def __init__(
        self,
        model: str | SimulationConfig = "g60",
        config: SimulationConfig | None = None,
        *,
        environment: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        if isinstance(model, SimulationConfig):
            config, model = model, "g60"
        if config is not None:
            settings = {**config.settings(), **settings}
        devices = {
            kind: read(settings.pop(kind), module_of("devices", kind).Config, kind)
            for kind in device_keys(Config)
            if kind in settings
        }
        arm: Config = read({"model": model, **settings}, Config)
        tempo = ClockState()
        deps = Deps(fault_source(Rules(), 0), lambda name: read_model(name, beside=""), tempo)
        inner = build("arm", arm, deps)
        mounted = mount_devices("arm", inner, devices, Mount(deps.fault_source))
        around: EnvironmentConfig = read(environment or {}, EnvironmentConfig)
        surroundings = CellEnvironment(around.build(deps.read))
        whole = (arm, devices, around, contents((arm, around), deps.read))
        digest = sha256(msgspec.json.encode(whole)).hexdigest()[:16]
        parts = {"arm": inner, **inner.parts, "environment": surroundings}
        surroundings.join(parts)
        cell = Cell("arm", digest=digest, components=parts, faces={}, clock_state=tempo)
        chain, there = inner.arm.movers[0].chain, around.build(deps.read)
        room = ArmSurroundings(body_of(arm, chain, deps.read), there)
        touched = room if arm.collision.enable else None
        planned = replace(
            setup_of_arm(inner.arm),
            devices=lambda: ArmDevices("arm", arm, devices, Rules(), 0, touched),
        )
        self._attach(cell, inner, surroundings, mounted, planned)
        self._feedback_delay = arm.simulation.feedback_delay_ms / 1000.0
        if config is not None:
            self.set_time_scale(config.time_scale)

    def _attach(
        self,
        cell: Cell,
        inner: ArmController,
        surroundings: CellEnvironment,
        devices: Mapping[str, Device],
        planned: Setup,
    ) -> None:
        self.planned = planned
        self._cell, self._inner, self._tempo = cell, inner, cell.clock_state
        self.surroundings = surroundings
        self._refused: list[str] = []
        self.io = AtNow(inner.io, lambda: cell.now)
        self._devices = {kind: AtNow(part, lambda: cell.now) for kind, part in devices.items()}

    @classmethod
    def of_cell(
        cls,
        cell: Cell,
        name: str,
        devices: Mapping[str, Device],
        *,
        feedback_delay: float,
        planned: Setup,
    ) -> "VirtualController":
        """The controller of an arm of a cell that exists already; it shares the cell's time.

        ``planned``: how programs are planned without running them.
        """
        inner, surroundings = cell.components[name], cell.components["environment"]
        if not isinstance(inner, ArmController):
            raise ConfigError(f"{name} is no arm", value=type(inner).__name__)
        assert isinstance(surroundings, CellEnvironment)
        controller = cls.__new__(cls)
        controller._attach(cell, inner, surroundings, devices, planned)
        controller._feedback_delay = feedback_delay
        return controller

    def __getattr__(self, name: str) -> AtNow:
        devices: dict[str, AtNow] = self.__dict__.get("_devices", {})
        if name in devices:
            return devices[name]
        raise AttributeError(
            f"VirtualController has no {name!r}; its devices: {', '.join(devices) or 'io'}"
        )

    def timed(self) -> tuple[Cell, ArmController]:
        """The cell and the controller themselves, whose calls take the time."""
        return self._cell, self._inner

    # ── time ──

    def advance(self, duration: float) -> None:
        """Lets simulated seconds pass."""
        self._cell.advance(self._now + duration_ns(duration))

    def wait(self, duration: float) -> None:
        """Lets seconds of wall time pass: simulated time advances by them times the time scale."""
        self.advance(0.0 if self._tempo.paused else duration * self._tempo.scale)

    def run_until_idle(self, timeout: float = IDLE_TIMEOUT) -> None:
        """Lets time pass until nothing is under way, and the feedback delay after it."""
        end = self._now + nanoseconds(timeout)
        while self._inner.busy() and (at := self._cell.next_wake()) is not None and at <= end:
            self._cell.advance(at)
        if self._inner.busy() and self._cell.next_wake() is not None:
            self._cell.advance(end)
            raise TimeoutError(f"still under way after {timeout:g} simulated seconds")
        self.advance(self._feedback_delay)

    def simulation_time(self) -> float:
        return seconds(self._now)

    def set_time_scale(self, scale: float) -> Refused | None:
        return self._inner.set_time_scale(scale)

    def pause(self) -> None:
        self._inner.pause()

    def resume(self) -> None:
        self._inner.resume()

    # ── connection and drives ──

    def connect(self) -> Refused | None:
        return self._inner.connect(self._now)

    def disconnect(self) -> Refused | None:
        return self._inner.disconnect(self._now)

    def is_connected(self) -> bool:
        return self._inner.is_connected()

    def enable(self) -> Refused | None:
        return self._inner.enable(self._now)

    def disable(self) -> Refused | None:
        return self._inner.disable(self._now)

    def is_enabled(self) -> bool:
        return self._inner.is_enabled()

    def is_simulation(self) -> bool:
        return self._inner.is_simulation()

    # ── motion ──

    def send_gcode(self, line: str) -> Refused | None:
        """Queues a line. One that cannot be carried out when its turn comes, as out of reach, is an
        error of `status`."""
        refused = self._inner.send_gcode(line, self._now)
        if refused is not None:
            self._refused.append(f"{line.strip()}: {refused.reason}")
        return refused

    @property
    def refused(self) -> list[str]:
        """Lines that `send_gcode` has refused, and the error at which the program stands now."""
        status = self.status()
        stands = status.error and status.state != "Alarm"
        return self._refused + ([status.error_message] if stands else [])

    def jog(self, axis: int, velocity: float) -> Refused | None:
        """Jogs one axis (0 …) at a speed in rad/s."""
        return self._inner.jog(axis, velocity, self._now)

    def stop_jog(self) -> Refused | None:
        return self._inner.stop_jog(self._now)

    def stop(self) -> Refused | None:
        return self._inner.stop(self._now)

    def emergency_stop(self) -> Refused | None:
        return self._inner.emergency_stop(self._now)

    def reset(self) -> Refused | None:
        return self._inner.reset(self._now)

    def home(self, axis: int = -1) -> Refused | None:
        """Homes one axis; -1: all."""
        return self._inner.home(self._now, axis)

    def is_homed(self) -> bool:
        return self._inner.is_homed()

    def hold(self) -> Refused | None:
        return self._inner.hold(self._now)

    def cycle_start(self) -> Refused | None:
        return self._inner.cycle_start(self._now)

    def override_feed(self, percent: float) -> Refused | None:
        return self._inner.override_feed(percent, self._now)

    def override_rapid(self, percent: float) -> Refused | None:
        return self._inner.override_rapid(percent, self._now)

    def set_optional_stop(self, wanted: bool) -> None:
        self._inner.set_optional_stop(wanted)

    def set_joint_positions(self, positions: ArrayLike) -> Refused | None:
        """Puts the joints there (rad), without a motion."""
        return self._inner.set_joint_positions(positions, self._now)

    # ── readings ──

    def joint_state(self) -> JointState:
        """The joints in rad, rad/s, rad/s² and Nm, with `positions_deg` beside them."""
        return self._inner.joint_state(self._now)

    def tcp(self) -> Pose:
        """Metres and radians."""
        return self._inner.tcp(self._now)

    def tally(self) -> Tally:
        return self._inner.tally(self._now)

    def status(self) -> ControllerStatus:
        return self._inner.status(self._now)

    def on_status(self, listener: Callable[[ControllerStatus], None]) -> None:
        self._inner.on_status(listener)

    def on_command(self, listener: Callable[[str, int], None]) -> None:
        """Calls the listener with each command and its time in ns."""
        self._inner.on_command(listener)

    def on_joint_state(self, listener: Callable[[JointState], None]) -> None:
        self._inner.on_joint_state(listener, self._now)

    def on_collision(self, listener: CollisionListener) -> None:
        """Calls the listener at every contact; never if `collision.enable` is false."""
        if self._inner.collision is not None:
            self._inner.collision.on_collision(listener)

    def contacts(self) -> tuple[Contact, ...]:
        """The contacts of this moment."""
        return self._inner.collision.contacts() if self._inner.collision else ()

    # ── pins ──

    def digital_io(self) -> DigitalIO:
        return self._inner.digital_io()

    def analog_io(self) -> AnalogIO:
        return self._inner.analog_io(self._now)

    def input_result(self) -> float:
        return self._inner.input_result()

    def set_digital_output(self, pin: int, value: bool) -> Refused | None:
        return self._inner.set_digital_output(pin, value, self._now)

    def set_analog_output(self, channel: int, volts: float) -> Refused | None:
        return self._inner.set_analog_output(channel, volts, self._now)

    def set_digital_input(self, pin: int, value: bool) -> Refused | None:
        """Sets an input as a sensor would."""
        return self._inner.io.set_digital_input(pin, value, self._now)

    def set_analog_input(self, channel: int, volts: float) -> Refused | None:
        return self._inner.io.set_analog_input(channel, volts, self._now)

    # ── snapshots ──

    def snapshot(self) -> Snapshot:
        return self._cell.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        self._cell.restore(snapshot)

    @property
    def _now(self) -> int:
        return self._cell.now
