"""A `VirtualController` for a prompt, a notebook or a test.

It is the controller of a cell with a clock of its own, so that no call needs the time. Time passes
only in `advance`, `wait` and `run_until_idle`.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec
from numpy.typing import ArrayLike

from understudy.config.cell import device_keys
from understudy.config.contents import contents
from understudy.config.files import read_model
from understudy.config.typed import read
from understudy.devices.mount import mount_devices
from understudy.errors import Refused
from understudy.ports import (
    AnalogIO,
    ControllerStatus,
    Deps,
    DigitalIO,
    JointState,
    Snapshot,
    Tally,
)
from understudy.registry import module_of
from understudy.robots.arm import Config, build
from understudy.simulation.cell import Cell
from understudy.simulation.clock_state import ClockState
from understudy.simulation.collision.contact import CollisionListener, Contact
from understudy.simulation.environment import CellEnvironment
from understudy.simulation.scenario import Config as Rules
from understudy.simulation.scenario import build as fault_source
from understudy.space.model.environment import EnvironmentConfig
from understudy.space.pose import Pose
from understudy.units import duration_ns, nanoseconds, seconds

IDLE_TIMEOUT = 3600.0
"""Simulated seconds after which `run_until_idle` raises TimeoutError."""


class VirtualController:
    """An arm's controller on its own virtual time.

    The settings are those of a cell file: ``VirtualController(model="g60", feed_unit="per_second",
    simulation={"update_rate_hz": 100})``, and so is the ``environment``. Commands return None, or
    why they were `Refused`.
    """

    def __init__(
        self, model: str = "g60", *, environment: dict[str, Any] | None = None, **settings: Any
    ) -> None:
        devices = {
            kind: read(settings.pop(kind), module_of("devices", kind).Config, kind)
            for kind in device_keys(Config)
            if kind in settings
        }
        config: Config = read({"model": model, **settings}, Config)
        self._feedback_delay = config.simulation.feedback_delay_ms / 1000.0
        self._tempo = ClockState()
        deps = Deps(fault_source(Rules(), 0), lambda name: read_model(name, beside=""), self._tempo)
        self._inner = build("arm", config, deps)
        mount_devices("arm", self._inner, devices, deps.fault_source)
        around: EnvironmentConfig = read(environment or {}, EnvironmentConfig)
        self.surroundings = CellEnvironment(around.build(deps.read))
        whole = (config, devices, around, contents((config, around), deps.read))
        digest = sha256(msgspec.json.encode(whole)).hexdigest()[:16]
        parts = {"arm": self._inner, **self._inner.parts, "environment": self.surroundings}
        self.surroundings.join(parts)
        self._cell = Cell("arm", digest=digest, parts=parts, faces={}, clock_state=self._tempo)

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
        return self._inner.send_gcode(line, self._now)

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
