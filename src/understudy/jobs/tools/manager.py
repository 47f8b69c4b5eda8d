"""ToolManager: the tools of an arm, their tips, and the steps and the G-code that change them.

One table has the steps of a change at docks, for the job that runs them and for G-code:

CLEAR → APPROACH_PUT → INSERT → UNLOCK → LEAVE → CHECK_LEFT → UNMOUNT (→ CLOSE)
      → APPROACH_TAKE → OPEN → COUPLE → CHECK_DOCK → LOCK → MOUNT → PULL → CHECK_HELD
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, Protocol, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode.blocks import number_text
from understudy.ports.tools import ChangerSettings, ToolDefinition, ToolTable
from understudy.space.pose import Pose, pose_mm_deg
from understudy.space.transform import inverse, matrix, pose, translation
from understudy.units import MINUTE, MM

Working = Literal[
    "CLEAR",
    "APPROACH_PUT",
    "INSERT",
    "UNLOCK",
    "LEAVE",
    "CHECK_LEFT",
    "UNMOUNT",
    "CLOSE",
    "APPROACH_TAKE",
    "OPEN",
    "COUPLE",
    "CHECK_DOCK",
    "LOCK",
    "MOUNT",
    "PULL",
    "CHECK_HELD",
]
"""The phases in which a change of tool is under way, in their order."""
Phase = Literal["IDLE", Working, "FAULT"]
Event = Literal["start", "put", "take", "done", "failed", "cancel"]

WORKING: tuple[Working, ...] = get_args(Working)
TRANSITIONS: Mapping[tuple[Phase, Event], Phase] = {
    ("IDLE", "start"): "CLEAR",
    ("FAULT", "start"): "CLEAR",
    # the old tool goes into its dock
    ("CLEAR", "put"): "APPROACH_PUT",
    ("APPROACH_PUT", "done"): "INSERT",
    ("INSERT", "done"): "UNLOCK",
    ("UNLOCK", "done"): "LEAVE",
    ("LEAVE", "done"): "CHECK_LEFT",
    ("CHECK_LEFT", "done"): "UNMOUNT",
    ("UNMOUNT", "done"): "CLOSE",
    ("CLOSE", "done"): "IDLE",
    ("UNMOUNT", "take"): "APPROACH_TAKE",
    # the new tool is taken from its dock
    ("CLEAR", "take"): "APPROACH_TAKE",
    ("APPROACH_TAKE", "done"): "OPEN",
    ("OPEN", "done"): "COUPLE",
    ("COUPLE", "done"): "CHECK_DOCK",
    ("CHECK_DOCK", "done"): "LOCK",
    ("LOCK", "done"): "MOUNT",
    ("MOUNT", "done"): "PULL",
    ("PULL", "done"): "CHECK_HELD",
    ("CHECK_HELD", "done"): "IDLE",
    **{(phase, "failed"): "FAULT" for phase in WORKING},
    **{(phase, "cancel"): "FAULT" for phase in WORKING},
}


class Go(Struct, frozen=True):
    """The flange moves to a pose in the cell, straight if `line`, while `tool` is mounted."""

    flange: Pose
    speed: float
    line: bool
    tool: int


class Sense(Struct, frozen=True):
    """Waits until inputs have these levels; `set`: an output that is switched first."""

    levels: tuple[tuple[int, bool], ...]
    problem: str
    set: tuple[int, bool] | None = None


class Use(Struct, frozen=True):
    """The controller uses another tool from now on."""

    tool: int


Step = Go | Sense | Use


class Change(Struct, frozen=True):
    """A change from one tool to another; 0: the bare flange."""

    old: ToolDefinition
    new: ToolDefinition
    settings: ChangerSettings


BARE = ToolDefinition(0, "flange")


def dock_refusal(old: ToolDefinition, new: ToolDefinition) -> Refused | None:
    """Why these two cannot be changed at docks."""
    for tool in (old, new):
        if tool.number and tool.dock is None:
            return Refused(f"T{tool.number} has no dock: change it by hand, or give it a `dock`")
    return Refused(f"T{new.number} is mounted already") if old.number == new.number else None


def outside(dock: Pose, approach: float) -> Pose:
    """The pose before a dock: back along the axis of the flange."""
    return pose(matrix(dock) @ translation(0.0, 0.0, -approach))


def phases(change: Change) -> list[Phase]:
    """The phases of a change in their order, without CLEAR."""
    found: list[Phase] = []
    phase = TRANSITIONS["CLEAR", event_after("CLEAR", change)]
    while phase != "IDLE":
        found.append(phase)
        phase = TRANSITIONS[phase, event_after(phase, change)]
    return found


def event_after(phase: Phase, change: Change) -> Event:
    """The event that ends a phase well."""
    if phase == "CLEAR":
        return "put" if change.old.number else "take"
    return "take" if phase == "UNMOUNT" and change.new.number else "done"


def step(phase: Phase, change: Change) -> Step:
    """What is done in a phase."""
    old, new, s = change.old, change.new, change.settings
    putting = WORKING.index(phase) < WORKING.index("APPROACH_TAKE")
    tool = old if putting else new
    assert tool.dock is not None
    before = outside(tool.dock, s.approach)
    free, held = ((s.present, False), (s.locked, False)), ((s.present, True), (s.locked, True))
    opened = (s.locked, False)
    name = f"T{tool.number}"
    steps: dict[Phase, Step] = {
        "APPROACH_PUT": Go(before, s.move_speed, False, old.number),
        "INSERT": Go(tool.dock, s.dock_speed, True, old.number),
        "UNLOCK": Sense(
            (opened,), f"{name} does not come off: the lock stays closed", (s.unlock, True)
        ),
        "LEAVE": Go(before, s.dock_speed, True, old.number),
        "CHECK_LEFT": Sense(free, f"{name} did not stay in its dock"),
        "UNMOUNT": Use(0),
        "CLOSE": Sense((), "the lock stays open", (s.unlock, False)),
        "APPROACH_TAKE": Go(before, s.move_speed, False, 0),
        "OPEN": Sense((opened,), "the lock does not open", (s.unlock, True)),
        "COUPLE": Go(tool.dock, s.dock_speed, True, 0),
        "CHECK_DOCK": Sense(((s.present, True),), f"{name} is not in its dock"),
        "LOCK": Sense(held, f"{name} is not locked", (s.unlock, False)),
        "MOUNT": Use(new.number),
        "PULL": Go(before, s.dock_speed, True, new.number),
        "CHECK_HELD": Sense(held, f"{name} is not locked after it left its dock"),
    }
    return steps[phase]


AXES = "XYZABC"
AT_REST = "G4 P0"
"""M64 and M65 act at once, also while the arm still moves; G4 waits until it rests."""


# ── the manager ───────────────────────────────────────────────────────────────────────────────────


class ToolController(Protocol):
    """The controller that moves the tool."""

    def send_gcode(self, text: str, now: int) -> Refused | None: ...


class ToolsStatus(Struct, frozen=True):
    """The active tool, 0 for the bare flange, and the table."""

    active: int
    tools: tuple[ToolDefinition, ...]


class ToolManager:
    """The tool table; a component that acts only when it is called.

    ``table``, ``controller``: of an arm; without them the manager has a table of its own, and
    `set_active_tool` sets a number only.
    """

    def __init__(
        self,
        tools: Iterable[ToolDefinition] = (),
        *,
        table: ToolTable | None = None,
        controller: ToolController | None = None,
        settings: ChangerSettings | None = None,
        feed_per_second: bool = False,
    ) -> None:
        """``settings``: of a tool changer; without one, tools are changed by hand.
        ``feed_per_second``: the unit of F in the G-code, else per minute."""
        self._own = {tool.number: tool for tool in tools}
        self._table = table
        self._controller = controller
        self._settings = settings
        self._feeds_per_minute = 1.0 if feed_per_second else MINUTE
        self._active = 0

    # ── table ──

    def define_tool(self, tool: ToolDefinition, now: int = 0) -> Refused | None:
        """Adds a tool, or replaces its data. The table of an arm keeps numbers and masses of the
        cell file, on which its dynamics are built."""
        if tool.number < 1:
            return Refused(f"T{tool.number} cannot be defined; allowed: 1 and above")
        if not all(map(math.isfinite, (*tool.tcp, tool.mass))) or tool.mass < 0.0:
            return Refused(f"T{tool.number}: tip and mass must be finite, the mass not negative")
        if self._table is not None:
            known = self.tools().get(tool.number)
            if known is None:
                return Refused(f"T{tool.number} is not in `tools` of the arm; {self._known()}")
            if (known.mass, known.com) != (tool.mass, tool.com):
                return Refused(f"the mass of T{tool.number} is set in `tools` of the arm")
            if refused := self._table.set_tip(tool.number, tool.tcp, now):
                return refused
        self._own[tool.number] = tool
        return None

    def tools(self) -> Mapping[int, ToolDefinition]:
        """All tools by number. Tips are those that the arm uses now."""
        if self._table is None:
            return dict(self._own)
        return {
            number: replace(self._own[number], tcp=tool.tcp) if number in self._own else tool
            for number, tool in self._table.tools().items()
        }

    def get_tool(self, tool_number: int) -> ToolDefinition | Refused:
        if tool_number == 0:
            return BARE
        return self.tools().get(tool_number) or Refused(
            f"there is no tool {tool_number}; {self._known()}"
        )

    def _known(self) -> str:
        return "there are: " + ", ".join(f"T{number}" for number in (0, *sorted(self.tools())))

    # ── active tool ──

    def get_active_tool(self, now: int = 0) -> int:
        return self._active if self._table is None else self._table.mounted(now)

    def set_active_tool(self, tool_number: int, now: int = 0) -> Refused | None:
        """The tool that is on the flange; nothing moves. The controller gets an M61."""
        if isinstance(found := self.get_tool(tool_number), Refused):
            return found
        if self._controller is not None:
            return self._controller.send_gcode(f"M61 Q{tool_number}", now)
        self._active = tool_number
        return None

    # ── offsets ──

    def apply_tlo(self, pose_of_flange: Pose, tool_number: int) -> Pose | Refused:
        """The pose of a tool's tip for this pose of the flange."""
        return self._shifted(pose_of_flange, tool_number, back=False)

    def remove_tlo(self, pose_of_tip: Pose, tool_number: int) -> Pose | Refused:
        """The pose of the flange for this pose of a tool's tip."""
        return self._shifted(pose_of_tip, tool_number, back=True)

    def _shifted(self, at: Pose, tool_number: int, *, back: bool) -> Pose | Refused:
        tool = self.get_tool(tool_number)
        if isinstance(tool, Refused):
            return tool
        offset = matrix(tool.tcp)
        return pose(matrix(at) @ (inverse(offset) if back else offset))

    # ── G-code ──

    def change(self, new_tool: int, now: int = 0) -> Change | Refused:
        """The change at the docks from the active tool; refused if a dock is missing."""
        old, new = self.get_tool(self.get_active_tool(now)), self.get_tool(new_tool)
        if isinstance(old, Refused):
            return old
        if isinstance(new, Refused):
            return new
        if self._settings is None:
            return Refused("the arm has no tool changer: change the tool by hand")
        return dock_refusal(old, new) or Change(old, new, self._settings)

    def generate_tool_change_gcode(self, new_tool: int, now: int = 0) -> str | Refused:
        """The lines of a change from the active tool, one per line of text.

        With a tool changer and docks: the moves, outputs and sensors of the change, and an M6 that
        the controller refuses unless the sensors see the tool. Otherwise M6 waits for the operator.
        """
        new = self.get_tool(new_tool)
        if isinstance(new, Refused):
            return new
        change = self.change(new_tool, now)
        if isinstance(change, Change):
            middle = [line for phase in phases(change) for line in self._lines(step(phase, change))]
        else:
            middle = [f"T{new_tool} M6"]
        active = self.get_tool(self.get_active_tool(now))
        outputs = active.outputs if isinstance(active, ToolDefinition) else ()
        off = [AT_REST, *(f"M65 P{pin}" for pin in outputs)] if outputs else []
        applied = [f"G43 H{new_tool}"] if new_tool else []
        return "\n".join(["G49", *off, *middle, *applied, ""])

    def _lines(self, each: Step) -> Iterator[str]:
        if isinstance(each, Use):
            yield f"T{each.tool} M6"
        elif isinstance(each, Go):
            tip = self.apply_tlo(each.flange, each.tool)
            assert isinstance(tip, Pose)
            values = zip(AXES, pose_mm_deg(tip), strict=True)
            words = (letter + number_text(round(value, 6)) for letter, value in values)
            feed = f" F{number_text(round(each.speed / MM * self._feeds_per_minute, 6))}"
            yield f"G21 G90 G94 G53 {'G1' if each.line else 'G0'} {' '.join(words)}" + (
                feed if each.line else ""
            )
        else:
            yield from self._sensor_lines(each)

    def _sensor_lines(self, each: Sense) -> Iterator[str]:
        assert self._settings is not None
        if each.set is not None:
            pin, on = each.set
            yield AT_REST
            yield f"M{64 if on else 65} P{pin}"
        for pin, level in each.levels:
            yield f"M66 P{pin} L{3 if level else 4} Q{number_text(self._settings.timeout)}"

    # ── component ──

    def status(self, now: int) -> ToolsStatus:
        return ToolsStatus(self.get_active_tool(now), tuple(self.tools().values()))

    def save(self) -> tuple[int, tuple[ToolDefinition, ...]]:
        return self._active, tuple(self._own.values())

    def load(self, state: object) -> None:
        active, own = msgspec.convert(state, tuple[int, tuple[ToolDefinition, ...]])
        self._active, self._own = active, {tool.number: tool for tool in own}
