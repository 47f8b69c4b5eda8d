"""Commands for the jobs of a robot: pick & place with its pallet, and the modes of operation."""

import math
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, to_builtins

from understudy.errors import Refused
from understudy.operator.events import EventLog
from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command
from understudy.ports.modes import OperationMode, TargetMode
from understudy.ports.workpieces import WorkpieceReading

if TYPE_CHECKING:
    from understudy.simulation.workpieces.workpieces import Workpieces

PICK_PLACE, MODES, GRIPPER = "pick_place", "modes", "gripper"
PALLET, SOURCE_PALLET = "pallet", "source_pallet"
TOOLS, CHANGER = "tools", "tool_change"
Act = Callable[[Any, int], Refused | None]
"""A command of a job: its part and the time."""


class OfJob(Struct, frozen=True, forbid_unknown_fields=True):
    """`robot`: can be left out if one robot of the cell has such a job."""

    robot: str = ""


class Cycles(Struct, frozen=True, forbid_unknown_fields=True):
    """`max_cycles`: -1 means without an end."""

    robot: str = ""
    max_cycles: Annotated[int, Meta(ge=-1, le=1_000_000_000)] = -1


class OfPallet(Struct, frozen=True, forbid_unknown_fields=True):
    """`source`: the pallet from which the parts are taken, not the one to which they go."""

    robot: str = ""
    source: bool = False

    @property
    def kind(self) -> str:
        return SOURCE_PALLET if self.source else PALLET


class NewPallet(OfPallet, frozen=True, forbid_unknown_fields=True):
    """`clear`: takes the simulated parts that lie on the pallet out of the cell."""

    clear: bool = False


class Index(OfPallet, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`index`: the number of places that are done; the place after them is next."""

    index: Annotated[int, Meta(ge=0, le=1_000_000_000)]


class Layer(OfPallet, frozen=True, forbid_unknown_fields=True, kw_only=True):
    layer: Annotated[int, Meta(ge=0, le=1000)]


class NewTool(Struct, frozen=True, forbid_unknown_fields=True):
    tool: Annotated[int, Meta(ge=0, le=99)]
    robot: str = ""


class RequestedMode(Struct, frozen=True, forbid_unknown_fields=True):
    mode: TargetMode
    robot: str = ""


class Jobs:
    """Finds the job of a robot and acts on it at the time of the cell; of a REAL robot that has
    such a job, at its own."""

    def __init__(self, robots: Robots) -> None:
        self._robots = robots

    def having(self, kind: str) -> dict[str, Robot]:
        """The robots that have such a job."""
        return {robot.name: robot for robot in self._robots if self._part(robot, kind) is not None}

    def part(self, name: str, kind: str) -> tuple[Robot, Any] | Refused:
        """A robot and its job; without a name, of the only robot that has one."""
        able = self.having(kind)
        if not name and len(able) == 1:
            name = next(iter(able))
        if not name and able:
            return Refused(f"robot: several have {kind}: {', '.join(able)}")
        robot = self._robots.find(name) if name else Refused(f"no robot of this cell has {kind}")
        if isinstance(robot, Refused):
            return robot
        if robot.name not in able:
            there = ", ".join(able) or "none"
            return Refused(f"{robot.name} has no {kind}; robots of this cell that have it: {there}")
        real = robot.real_job(kind)
        return robot, self._part(robot, kind) if isinstance(real, Refused | None) else real

    def act(self, name: str, kind: str, act: Act) -> Any:
        """Acts on a job; its status, or why it was refused."""
        found = self.part(name, kind)
        if isinstance(found, Refused):
            return found
        robot, part = found
        if isinstance(real := robot.real_job(kind), Refused):
            return real
        refused = robot.side_of(part).time.act(lambda now: act(part, now))
        return refused if isinstance(refused, Refused) else status_of(robot, part)

    def look(self, name: str, kind: str) -> Any:
        found = self.part(name, kind)
        return found if isinstance(found, Refused) else status_of(*found)

    def _part(self, robot: Robot, kind: str) -> Any:
        return self._robots.components[robot.name].get(f"{robot.name}.{kind}")


def status_of(robot: Robot, part: Any) -> dict[str, Any]:
    status = robot.side_of(part).time.act(part.status)
    return {"robot": robot.name, **to_builtins(status)}


# ── pick & place ────────────────────────────────────────────────────────────────────────────────


def parts_on(pallet: Any, parts: Iterable[WorkpieceReading]) -> list[str]:
    """Parts that lie on a place of a pallet: their centre is over or under it."""
    places = [pallet.get_position(index) for index in range(pallet.get_total_positions())]
    return [
        part.name
        for part in parts
        if not part.holder
        and any(
            math.hypot(part.pose.x - at.x, part.pose.y - at.y) <= 0.5 * max(part.size[:2])
            for at in places
        )
    ]


class PickPlaceCommands:
    """The commands of the pick & place cycle, of its hand and of its pallet."""

    def __init__(self, robots: Robots, log: EventLog, parts: "Workpieces | None" = None) -> None:
        """``parts``: the simulated ones."""
        self._jobs = Jobs(robots)
        self._parts = parts
        for name in self._jobs.having(PICK_PLACE):
            self._record(name, robots.components[name][f"{name}.{PICK_PLACE}"], log)

    def commands(self) -> list[Command]:
        if not self._jobs.having(PICK_PLACE):
            return []
        add = Command
        found = [
            add("pick_place", "state, counts and target of the cycle", self._look, OfJob, "viewer"),
            add("start_pick_place", "run cycle after cycle", self.start, Cycles),
            self._of_cycle("single_pick_place", "run one cycle", _single),
            self._of_cycle("stop_pick_place", "end the run; a held part stays", called("stop")),
            self._of_cycle("pause_pick_place", "feed hold", called("pause")),
            self._of_cycle("resume_pick_place", "go on after a pause", called("resume")),
            self._of_cycle("reset_pick_place", "clear the fault", called("reset")),
            self._of_cycle(
                "retract_pick_place", "tool straight up to the safe height",
                called("emergency_retract"),
            ),
            add("grip_part", "close the hand, if no cycle runs", self._grip, OfJob),
            self._of_cycle(
                "release_part", "open the hand, if no cycle runs", called("release_part")
            ),
        ]  # fmt: skip
        pallets = self._jobs.having(PALLET) or self._jobs.having(SOURCE_PALLET)
        return found + (self._of_pallet() if pallets else [])

    def _of_pallet(self) -> list[Command]:
        add = Command
        return [
            add("pallet", "size, pattern and next place", self._pallet, OfPallet, "viewer"),
            add("set_pallet_index", "go on at a place of the pallet", self._set_index, Index),
            add("set_pallet_layer", "go on at a layer of the pallet", self._set_layer, Layer),
            add("reset_pallet", "begin the pallet again", self._reset_pallet, NewPallet),
        ]  # fmt: skip

    def _of_cycle(self, name: str, doc: str, act: Act) -> Command:
        return Command(name, doc, lambda given: self._jobs.act(given.robot, PICK_PLACE, act), OfJob)

    def _look(self, given: OfJob) -> Any:
        return self._jobs.look(given.robot, PICK_PLACE)

    def robots(self) -> Collection[str]:
        """The robots with such a job."""
        return self._jobs.having(PICK_PLACE)

    def running(self) -> bool:
        """Whether a job runs, also if its robot stands: it waits, or is paused."""
        return any(self._jobs.look(name, PICK_PLACE)["running"] for name in self.robots())

    def start(self, given: Cycles) -> Any:
        def start(cycle: Any, now: int) -> Refused | None:
            refused: Refused | None = cycle.start(now, max_cycles=given.max_cycles)
            return refused

        return self._jobs.act(given.robot, PICK_PLACE, start)

    def _grip(self, given: OfJob) -> Any:
        found = self._jobs.part(given.robot, GRIPPER)
        hand = None if isinstance(found, Refused) else found[1]

        def grip(cycle: Any, now: int) -> Refused | None:
            if hand is None or (refused := cycle.occupied(now)):
                return refused if hand is not None else Refused("the robot has no gripper")
            ticket = hand.start_grip(now)
            return ticket if isinstance(ticket, Refused) else None

        return self._jobs.act(given.robot, PICK_PLACE, grip)

    # ── pallet ──

    def _pallet(self, given: OfPallet) -> Any:
        return self._jobs.look(given.robot, given.kind)

    def _set_index(self, given: Index) -> Any:
        return self._change(given, lambda pallet, now: pallet.skip_to_position(given.index))

    def _set_layer(self, given: Layer) -> Any:
        return self._change(given, lambda pallet, now: pallet.set_layer(given.layer))

    def _reset_pallet(self, given: NewPallet) -> Any:
        def reset(pallet: Any, now: int) -> Refused | None:
            pallet.reset()
            if given.clear and self._parts is not None:
                for name in parts_on(pallet, self._parts.status(now).parts):
                    self._parts.remove(name, now)
            return None

        return self._change(given, reset)

    def _change(self, given: OfPallet, change: Act) -> Any:
        """Changes a pallet; refused while the cycle uses it."""
        found = self._jobs.part(given.robot, PICK_PLACE)
        cycle = None if isinstance(found, Refused) else found[1]

        def act(pallet: Any, now: int) -> Refused | None:
            if cycle is not None and cycle.is_running():
                return Refused("the pick & place cycle is running: stop it first")
            return change(pallet, now)

        return self._jobs.act(given.robot, given.kind, act)

    # ── log ──

    def _record(self, name: str, cycle: Any, log: EventLog) -> None:
        """Notes the end of every cycle in the event log; a fault as an alarm."""

        def ended(number: int, success: bool, now: int) -> None:
            if success:
                log.note("pick_place", name, f"cycle {number} done", now)
                return
            status = cycle.status(now)
            kind = "alarm" if status.state == "ERROR" else "pick_place"
            log.note(kind, name, f"cycle {number} failed: {status.last_error}", now)

        cycle.on_cycle(ended)


def _single(cycle: Any, now: int) -> Refused | None:
    refused: Refused | None = cycle.start(now, max_cycles=1)
    return refused


def called(method: str) -> Act:
    """The command of a job by the name of its method."""

    def act(part: Any, now: int) -> Refused | None:
        refused: Refused | None = getattr(part, method)(now)
        return refused

    return act


# ── modes of operation ──────────────────────────────────────────────────────────────────────────


class OperationModeCommands:
    """The commands of the mode managers: request, confirmation of a tool, retry, abort."""

    def __init__(self, robots: Robots, log: EventLog) -> None:
        self._jobs = Jobs(robots)
        for name in self._jobs.having(MODES):
            self._record(name, robots.components[name][f"{name}.{MODES}"], log)

    def commands(self) -> list[Command]:
        if not self._jobs.having(MODES):
            return []
        add = Command
        return [
            add("operation_mode", "mode of operation and changeover", self._look, OfJob, "viewer"),
            add("request_mode", "change the mode of operation", self._request, RequestedMode),
            self._of_modes("confirm_tool", "the tool that was asked for is mounted"),
            self._of_modes("retry_changeover", "start a failed changeover again", "retry"),
            self._of_modes("abort_changeover", "end a changeover; back, or to MANUAL", "abort"),
        ]

    def _of_modes(self, name: str, doc: str, method: str = "") -> Command:
        act = called(method or name)
        return Command(name, doc, lambda given: self._jobs.act(given.robot, MODES, act), OfJob)

    def _look(self, given: OfJob) -> Any:
        return self._jobs.look(given.robot, MODES)

    def _request(self, given: RequestedMode) -> Any:
        def request(modes: Any, now: int) -> Refused | None:
            refused: Refused | None = modes.request_mode_change(given.mode, now)
            return refused

        return self._jobs.act(given.robot, MODES, request)

    def _record(self, name: str, modes: Any, log: EventLog) -> None:
        def changed(old: OperationMode, new: OperationMode, now: int) -> None:
            log.note("mode", name, f"{old} → {new}", now)

        modes.on_mode_changed(changed)


# ── tools ───────────────────────────────────────────────────────────────────────────────────────


class ToolCommands:
    """The tool table of a robot with jobs, and changes at the docks of its tool changer."""

    def __init__(self, robots: Robots) -> None:
        self._jobs = Jobs(robots)

    def commands(self) -> list[Command]:
        found = []
        if self._jobs.having(TOOLS):
            doc = "the tool table and the active tool (m, rad, kg)"
            found.append(Command("tool_table", doc, self._table, OfJob, "viewer"))
        if self._jobs.having(CHANGER):
            found += [
                Command("tool_change", "state of a tool change", self._look, OfJob, "viewer"),
                Command("change_tool", "change the tool at the docks", self._change, NewTool),
                Command("cancel_tool_change", "end a change where it is", self._cancel, OfJob),
            ]  # fmt: skip
        return found

    def _table(self, given: OfJob) -> Any:
        return self._jobs.look(given.robot, TOOLS)

    def _look(self, given: OfJob) -> Any:
        return self._jobs.look(given.robot, CHANGER)

    def _change(self, given: NewTool) -> Any:
        """Refused while a job or a program uses the robot."""
        found = self._jobs.part(given.robot, CHANGER)
        if isinstance(found, Refused):
            return found
        robot, _ = found
        if robot.under_way():
            return Refused(f"{robot.name} is under way: tools are changed at rest only")
        if refused := robot.motion_refusal("move_to"):
            return refused

        def change(changer: Any, now: int) -> Refused | None:
            ticket = changer.change(given.tool, now)
            return ticket if isinstance(ticket, Refused) else None

        return self._jobs.act(given.robot, CHANGER, change)

    def _cancel(self, given: OfJob) -> Any:
        return self._jobs.act(given.robot, CHANGER, called("cancel"))
