"""A power source alone with its pins, and a whole welding cell."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.parts import components_of, part

import understudy
from understudy.agenda import advance
from understudy.devices.welder import Config, Phase
from understudy.devices.welder.welder import State, Welder
from understudy.ports.device import Mount
from understudy.robots.arm.controller import ArmController
from understudy.simulation.io.virtual_io import Config as Pins
from understudy.simulation.io.virtual_io import Link, VirtualIO
from understudy.simulation.scenario import Rule, Scenario
from understudy.units import NS_PER_MS, nanoseconds

MS = NS_PER_MS
LINKS = [Link(0, 0, 50), Link(1, 1, 100)]
"""The links of the design document."""
GOOD_WELD = [
    (0, "PreFlow"),
    (400, "Ignition"),
    (470, "Stabilize"),
    (670, "Weld"),
    (5000, "Crater"),
    (5500, "Burnback"),
    (5580, "PostFlow"),
    (6580, "Idle"),
]
"""Gas and arc on at 0, arc off at 5 s; milliseconds."""


def still(times: np.ndarray) -> np.ndarray:
    return np.zeros((len(times), 3))


def along_x(speed: float, begins: float = 0.0, ends: float = np.inf) -> Callable[..., np.ndarray]:
    """A tool path along x at ``speed`` m/s between two times."""

    def way(times: np.ndarray) -> np.ndarray:
        x = speed * (np.clip(times, begins, ends) - begins)
        return np.stack((x, np.zeros(len(x)), np.zeros(len(x))), axis=1)

    return way


class WelderBench:
    """Pins and power source on one time axis, in milliseconds."""

    def __init__(
        self,
        *,
        way: Callable[..., np.ndarray] = still,
        rules: dict[str, Rule] | None = None,
        links: list[Link] = LINKS,
        seed: int = 1,
        **settings: Any,
    ) -> None:
        self.io = VirtualIO(Pins(links=links))
        self.fault_source = Scenario(rules or {}, seed)
        config = Config(**settings)
        self.welder = Welder("torch", config, Mount(self.fault_source, self.io, way))
        self.fault_source.act_on({"torch": self.welder})
        self.phases: list[tuple[float, str]] = []
        self.welder.on_phase(lambda phase, now: self.phases.append((now / MS, phase)))
        self.now = 0

    def run(self, to_ms: float) -> "WelderBench":
        self.now = round(to_ms * MS)
        advance([self.io, self.welder, self.fault_source], self.now)
        return self

    def turn(self, to_ms: float, pin: int | str, on: bool) -> "WelderBench":
        """Run to a time and set an output."""
        self.run(to_ms)
        assert self.io.set_digital_output(pin, on, self.now) is None
        return self

    def start(self, at_ms: float = 0.0) -> "WelderBench":
        """Gas and arc on."""
        return self.turn(at_ms, "GAS", True).turn(at_ms, "ARC_START", True)

    def inject(self, fault: str, **figures: float) -> Any:
        return self.fault_source.inject(fault, "torch", figures, self.now)

    def edges(self, pin: int | str) -> list[tuple[float, bool]]:
        """When an input changed, in ms."""
        number = self.io.di.number(pin)
        history = self.io.history()
        return [(c.at / MS, c.value) for c in history if (c.bank, c.pin) == ("DI", number)]

    def phase(self) -> Phase:
        return self.welder.phase

    @property
    def state(self) -> State:
        return self.welder.state

    @property
    def issues(self) -> list[str]:
        return [issue.kind for issue in self.welder.issues()]


READY_POSE = "G0 X450 Y-100 Z450 A180 B0 C0"
SEAM = """G90 G21
G0 X450 Y-100 Z450 A180 B0 C0
G0 X450 Y-100 Z350 A180 B0 C0
M7
M3
G1 Y100 F600
M5
M9
G0 X450 Y100 Z450 A180 B0 C0
M2""".splitlines()
"""200 mm at 10 mm/s."""


class WeldingCell:
    """The shipped cell g60_welding with changed settings and enabled drives."""

    def __init__(
        self,
        *,
        welder: dict[str, Any] | None = None,
        rules: dict[str, Any] | None = None,
        enabled: bool = True,
        **robot: Any,
    ) -> None:
        config = {
            "seed": 1,
            "robots": {
                "g60": {
                    "kind": "arm",
                    "tool": 1,
                    "tools": {1: {"tcp_mm_deg": [0, 0, 150, 0, 0, 0]}},
                    "io": {
                        "links": [
                            {"output": "ARC_START", "input": "ARC_OK", "delay_ms": 50},
                            {"output": "GAS", "input": "GAS_OK", "delay_ms": 100},
                        ]
                    },
                    "welder": welder or {},
                    **robot,
                }
            },
            "scenario": {"rules": rules or {}},
        }
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "cell.yaml"
            file.write_text(json.dumps(config).replace('"1":', "1:"))
            self.virtual_cell = understudy.load_cell(str(file))
        self.timed_cell = self.virtual_cell.timed_cell
        self.parts = components_of(self.virtual_cell)
        self.g60 = part(self.virtual_cell, "g60", ArmController)
        self.io = self.g60.io
        self.welder = part(self.virtual_cell, "g60.welder", Welder)
        self.phases: list[tuple[float, str]] = []
        self.welder.on_phase(lambda phase, now: self.phases.append((now / 1e9, phase)))
        if enabled:
            self.g60.connect(0)
            self.g60.enable(0)

    @property
    def now(self) -> int:
        return self.timed_cell.now

    def send(self, *lines: str) -> None:
        for line in lines:
            assert self.g60.send_gcode(line, self.now) is None, line

    def run(self, *lines: str) -> None:
        """Send, and let time pass until all is done."""
        self.send(*lines)
        self.virtual_cell.run_while_busy()

    def advance(self, seconds: float) -> None:
        self.virtual_cell.advance(seconds)

    def until(self, phase: str, patience: float = 60.0) -> None:
        """Let time pass until the power source is in this phase."""
        end = self.now + nanoseconds(patience)
        while self.welder.phase != phase:
            at = self.timed_cell.next_wake()
            assert at is not None, f"{phase} does not come: {self.welder.phase}"
            assert at <= end, f"{phase} does not come in time: {self.welder.phase}"
            self.virtual_cell.advance_to(at)

    def inject(self, fault: str, **figures: float) -> Any:
        fault_source = part(self.virtual_cell, "scenario", Scenario)
        return fault_source.inject(fault, "g60.welder", figures, self.now)

    @property
    def error(self) -> str:
        return self.g60.status(self.now).error_message

    @property
    def issues(self) -> list[str]:
        return [issue.kind for issue in self.welder.issues()]

    @property
    def moving(self) -> bool:
        return any(abs(v) > 1e-9 for v in self.g60.joint_state(self.now).velocities)
