"""Random operators, clients and faults on a pick & place cell, and what must always hold."""

import logging
from typing import Any

import numpy as np
from tests.benches import Bench
from tests.jobs.pick_place.pick_cell import TEXT

from understudy.errors import Refused
from understudy.jobs.pick_place.state import RUNNING
from understudy.ports.io import PinChange
from understudy.simulation.workpieces.workpieces import boxes_touch
from understudy.units import MM
from understudy.wire.exchange import Client, InProcessCell

FACES = "    faces: {grblhal: {port: 0}}\n"
TOP_SPEED = 0.25
STEP = 0.004
"""Seconds between two looks at the speed of the tool."""
OPENS = ("release_part", "gripper_open", "gripper_emergency_release", "vacuum_off", "blow_off")
"""Commands that open the hand on purpose."""
DROPS = (
    "slip", "air_lost", "valve_stuck", "part_sensor_stuck", "force_input", "pulse_input",
    "vacuum_leak", "drive_fault", "cable_cut", "finger_blocked",
)  # fmt: skip
"""Faults after which a part may fall, or is not noticed."""
STATES = (*RUNNING, "IDLE", "ERROR", "PAUSED")
Call = tuple[str, dict[str, Any]]


class LogOfBugs(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class Attacked(Bench):
    """A cell under attack; `look` checks it after every step."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.log = LogOfBugs()
        logging.getLogger("understudy").addHandler(self.log)
        self.journal: list[str] = []
        self.parts: dict[str, Any] = dict(self.live._cell.components)
        self.arm, self.job = self.parts["g60"], self.parts["g60.pick_place"]
        self.loose = False
        """A part may leave the hand: a fault, or a command that opens it."""
        self.violations: list[str] = []
        self.clients = [self._client() for _ in range(2)]
        self.arm.io.on_change(self._pin_changed)
        self._had = ""
        self._released = False
        self.job.on_state(self._state_changed)
        self.do("enable", robot="g60")

    def close(self) -> None:
        logging.getLogger("understudy").removeHandler(self.log)
        super().close()

    def _client(self) -> Client:
        cell = InProcessCell.__new__(InProcessCell)
        cell.timed_cell, cell.exchange = self.live._cell, self.live._exchange
        return Client(cell, "g60.grblhal")

    @property
    def held(self) -> str:
        found: str = self.parts["parts"].held_by("g60")
        return found

    @property
    def mode(self) -> str:
        found: str = self.parts["g60.modes"].current_mode
        return found

    def _pin_changed(self, change: PinChange) -> None:
        if change.bank == "DO" and change.pin == 0 and change.value and self.mode != "WELDING":
            self.violations.append(f"arc in {self.mode}")

    def _state_changed(self, old: str, new: str, now: int) -> None:
        self._released |= new == "RELEASING"

    # ── actions ──

    def call(self, name: str, /, **given: Any) -> Any:
        self.journal.append(f"{name} {given}")
        self.loose |= name in OPENS or given.get("fault") in DROPS
        self.loose |= name in (
            "set_output",
            "set_input",
            "link",
            "send_gcode",
            "mdi",
            "run_program",
        )
        answer = self.ask(name, **given)
        if isinstance(answer, Refused):
            assert "a bug" not in answer.reason, self.story()
            assert answer.reason.strip(), self.story()
        self.look()
        return answer

    def operate(self, name: str, parameters: dict[str, Any]) -> None:
        """An operator gives a command."""
        self.call(name, **parameters)

    def send(self, client: int, data: bytes) -> None:
        self.journal.append(f"client {client}: {data!r}")
        self.loose |= b"M6" in data
        self.clients[client].say(data)
        self.look()

    def leave(self, client: int) -> None:
        self.journal.append(f"client {client} leaves")
        self.clients[client].leave()
        self.clients[client] = self._client()
        self.look()

    def wait(self, seconds: float) -> None:
        self.journal.append(f"wait {seconds}")
        self._pass(seconds)

    def _pass(self, seconds: float) -> None:
        slow = self.mode == "MANUAL"
        for _ in range(max(1, round(seconds / STEP)) if slow else 1):
            step = STEP if slow else seconds
            before, tool = np.array(self.arm.tcp(self.live._cell.now)[:3]), self._tool()
            self.forward(step)
            way = np.linalg.norm(np.array(self.arm.tcp(self.live._cell.now)[:3]) - before)
            slow = slow and self.mode == "MANUAL" and tool == self._tool()
            assert not slow or way <= TOP_SPEED * step * 1.001, f"{way / step}: {self.story()}"
        self.look()

    def _tool(self) -> Any:
        return self.parts["g60.tools"].status(self.live._cell.now)

    def repeat(self, seconds: float) -> None:
        """A snapshot is invisible: after its restore the same time leads to the same bytes."""
        self.journal.append(f"repeat {seconds}")
        taken = self.do("snapshot")["snapshot"]
        self._pass(seconds)
        first = self.do("snapshot")["snapshot"]
        self.do("restore", snapshot=taken)
        self._pass(seconds)
        second = self.do("snapshot")["snapshot"]
        for name in first.parts:
            if name != "engine":
                assert first.parts[name] == second.parts[name], f"{name}: {self.story()}"

    # ── what must hold ──

    def look(self) -> None:
        status = self.job.status(self.live._cell.now)
        assert not self.log.lines, f"{self.log.lines}: {self.story()}"
        assert not self.live.problem, f"{self.live.problem}: {self.story()}"
        assert not self.violations, f"{self.violations}: {self.story()}"
        assert status.state in STATES
        assert (status.state == "ERROR") == bool(status.code), self.story()
        assert status.success_count + status.fail_count <= status.cycle_count, self.story()
        running = status.state not in ("IDLE", "ERROR")
        ended = status.cycle_count - status.success_count - status.fail_count
        assert ended == running, f"{ended} cycles have no end: {self.story()}"
        lost = self._had and not self.held and not self._released
        assert self.loose or not lost, f"{self._had} was dropped: {self.story()}"
        self._had, self._released = self.held, status.state == "RELEASING"
        self._look_at_parts()

    def _look_at_parts(self) -> None:
        rows = self.parts["parts"].status(self.live._cell.now).parts
        assert len({row.name for row in rows}) == len(rows)
        resting = [row for row in rows if row.state == "resting"]
        for number, one in enumerate(resting):
            for other in resting[:number]:
                assert not _overlap(self.parts["parts"], one, other), (
                    f"{one.name} is in {other.name}: {one.pose} {other.pose} {self.story()}"
                )

    def story(self) -> str:
        return "\n" + "\n".join(self.journal[-60:])

    # ── the end ──

    def recover(self) -> None:
        """An operator puts the cell in order again: then the job runs."""
        self.journal.append("recover")
        for client in self.clients:
            client.leave()
        self._pass(1.0)
        for name in ("stop_pick_place", "stop_program"):
            self.ask(name, robot="g60")
        self.do("unlink", robot="g60", output=9)
        self._pass(2.0)
        self.do("reset")
        self.do("enable", robot="g60")
        self._pass(2.0)
        self.ask("stop", robot="g60")
        self._pass(2.0)
        self.ask("cycle_start", robot="g60")
        self._pass(0.5)
        answer = self.ask("set_joint_positions", robot="g60", joints_deg=[0, -30, 60, 0, 60, 0])
        state = self.arm.status(self.live._cell.now)
        assert not isinstance(answer, Refused), f"{answer} {state.state} {state} {self.story()}"
        self.loose = True
        self._in_order("release_part", 3.0)
        if self.job.status(self.live._cell.now).state == "ERROR":
            self._in_order("reset_pick_place", 0.1)
        self._to_pick_place()
        self._in_order("reset_pallet", 0.0)
        self._in_order("single_pick_place", 60.0)
        status = self.do("pick_place")
        assert status["state"] in ("IDLE", "ERROR"), f"{status} {self.story()}"

    def _in_order(self, name: str, seconds: float) -> None:
        answer = self.ask(name)
        assert not isinstance(answer, Refused), f"{name}: {answer.reason} {self.story()}"
        self._pass(seconds)

    def _to_pick_place(self) -> None:
        self.ask("abort_changeover")
        self.ask("request_mode", mode="PICKPLACE")
        for _ in range(4):
            self._pass(5.0)
            self.ask("confirm_tool")
        self._pass(5.0)
        self.ask("set_tool", robot="g60", tool=2)
        self._pass(1.0)
        assert self.mode == "PICKPLACE", f"{self.do('operation_mode')} {self.story()}"


def _overlap(parts: Any, one: Any, other: Any) -> bool:
    """Two boxes overlap by more than the margin of collision checks."""
    if "cylinder" in (one.type, other.type):
        return False
    now, thin = 0, 2.5 * MM
    places = [parts.place(each.name, now) for each in (one, other)]
    halves = [np.maximum(np.array(each.size) / 2.0 - thin / 2.0, 1e-4) for each in (one, other)]
    return boxes_touch(places[0], halves[0], places[1], halves[1])


def cell_text(gripper: str) -> str:
    """The cell with four cubes; a cup grips them at their top."""
    text = TEXT
    if gripper == "PNEUMATIC_VACUUM":
        grasp = 'grasps: {"*": {offset_mm_deg: [0, 0, 20, 180, 0, 0]}}, '
        text = text.replace("{scan_position", f"{{{grasp}scan_position")
    return text.replace("    gripper: {}\n", f"    gripper: {{type: {gripper}}}\n" + FACES)
