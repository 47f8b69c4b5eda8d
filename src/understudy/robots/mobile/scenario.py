"""What happens to robots in MOCK mode, and when: scripts and injected faults.

All entries of all profiles that have a time are one timeline. The state is the number of entries
that have happened, and the number of draws of each rule that waits for a command.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from understudy.chance import draw
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.config.profile import FaultRule, SimulationProfile
from understudy.robots.mobile.hardware_interface import MotorFault
from understudy.robots.mobile.io import MockIo
from understudy.robots.mobile.motors import MockMotors
from understudy.robots.mobile.sensors import MockSensors
from understudy.robots.mobile.world import Worlds
from understudy.units import LATEST, nanoseconds


class Entry(NamedTuple):
    """Something that happens to a robot at a time (nanoseconds)."""

    at: int
    robot: int
    act: Callable[[], None]


class Rule(NamedTuple):
    """A fault rule and its number in the profile of a robot."""

    robot: int
    number: int
    rule: FaultRule


class Saved(Struct, frozen=True):
    """`drawn`: draws of each rule that waits for a command."""

    happened: int
    drawn: list[int]


class Faults:
    """Puts motors, inputs, outputs and devices out of order, and repairs them."""

    def __init__(
        self, layout: Layout, motors: MockMotors, io: MockIo, sensors: MockSensors
    ) -> None:
        self._layout = layout
        self._motors = motors
        self._io = io
        self._sensors = sensors

    def inject(self, robot: int, target: str, fault: MotorFault, at: int) -> None:
        """``target``: as in the profile, `drive` or `motor:<id>`, `io:<id>`, `device:<id>`."""
        for row in self._motor_rows(robot, target):
            self._motors.fail(row, fault, at)
        self._connect(robot, target, connected=False)

    def repair(self, robot: int, target: str) -> None:
        for row in self._motor_rows(robot, target):
            self._motors.clear(row)
        self._connect(robot, target, connected=True)

    def _motor_rows(self, robot: int, target: str) -> list[int]:
        if target == "drive":
            return list(self._layout.motor_rows(robot, "DRIVE").tolist())
        row = self._layout.motor_row(robot, target.removeprefix("motor:"))
        return [] if row is None or not target.startswith("motor:") else [row]

    def _connect(self, robot: int, target: str, *, connected: bool) -> None:
        kind, _, name = target.partition(":")
        if kind == "io":
            for row, (of, point) in enumerate(self._layout.inputs):
                if (of, point.io_id) == (robot, name):
                    self._io.connect_input(row, connected)
            for row, (of, output) in enumerate(self._layout.outputs):
                if (of, output.io_id) == (robot, name):
                    self._io.connect_output(row, connected)
        elif kind == "device":
            for row, (of, device) in enumerate(self._layout.devices):
                if (of, device.device_id) == (robot, name):
                    self._sensors.connect(row, connected)


class Scenario:
    """The timeline of all robots. ``seeds``: of the random numbers of each robot; ``robots``: those
    in MOCK mode."""

    def __init__(
        self, layout: Layout, robots: Sequence[int], seeds: Sequence[int], faults: Faults
    ) -> None:
        self._layout = layout
        self._seeds = seeds
        self._faults = faults
        self._entries: list[Entry] = []
        self._happened = 0
        self._waiting: dict[tuple[int, str], list[int]] = {}
        """The rules that wait for a command of a robot."""
        self._rules: list[Rule] = []
        for robot in robots:
            self._add_rules(robot, profile_of(layout, robot))
        self._drawn = [0] * len(self._rules)

    def add_scripts(self, robot: int, worlds: Worlds, io: MockIo, sensors: MockSensors) -> None:
        profile = profile_of(self._layout, robot)
        for press in profile.io_overrides.estop_script:
            self._add(press.at_seconds, robot, partial(io.press_estop, robot, press.pressed))
        for code in profile.scripts.barcodes:
            self._add(code.at_seconds, robot, partial(sensors.read_code, robot, code))
        for change in profile.scripts.obstacles:
            at = nanoseconds(change.at_seconds)
            self._add(change.at_seconds, robot, partial(worlds.change, robot, change, at))

    def begin(self) -> None:
        """Sorts the timeline: by time, then by robot, then as written."""
        self._entries.sort(key=lambda entry: entry[:2])

    def advance(self, now: int) -> None:
        """Everything that is due happens."""
        while self.next_entry() <= now:
            self._happened += 1
            self._entries[self._happened - 1].act()

    def next_entry(self) -> int:
        """When something happens next."""
        if self._happened < len(self._entries):
            return self._entries[self._happened].at
        return LATEST

    def command_started(self, robot: int, command_type: str, now: int) -> None:
        for number in self._waiting.get((robot, command_type), ()):
            index, self._drawn[number] = self._drawn[number], self._drawn[number] + 1
            self._try(self._rules[number], index, now)

    # ── inside ──

    def _add(self, at_seconds: float, robot: int, act: Callable[[], None]) -> None:
        self._entries.append(Entry(nanoseconds(at_seconds), robot, act))

    def _add_rules(self, robot: int, profile: SimulationProfile) -> None:
        for number, rule in enumerate(profile.fault_injection.rules):
            found = Rule(robot, number, rule)
            if isinstance(rule.value, str):
                self._waiting.setdefault((robot, rule.value), []).append(len(self._rules))
                self._rules.append(found)
            else:
                at = nanoseconds(rule.value)
                self._add(rule.value, robot, partial(self._try, found, 0, at))

    def _try(self, found: Rule, index: int, at: int) -> None:
        robot, number, rule = found
        name = f"{self._layout.robots[robot].identity.robot_id}.fault.{number}"
        if draw(self._seeds[robot], name, index) >= rule.probability:
            return
        cause = f"at {rule.value:g} s" if isinstance(rule.value, float) else f"with {rule.value}"
        fault = MotorFault(rule.fault_code, f"simulated fault {cause}")
        self._faults.inject(robot, rule.target, fault, at)

    # ── snapshot ──

    def save(self) -> Saved:
        return Saved(self._happened, list(self._drawn))

    def load(self, state: Saved) -> None:
        self._happened, self._drawn = state.happened, list(state.drawn)


def profile_of(layout: Layout, robot: int) -> SimulationProfile:
    """The profile of a robot, or the one of a robot without."""
    return layout.robots[robot].runtime.simulation_profile or SimulationProfile()
