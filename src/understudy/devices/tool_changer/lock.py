"""ToolLock: the lock between flange and tool, its two sensors, and the tools in their docks.

The lock follows its output after a delay. A tool stays in its dock when the lock opens there, and
is taken when the lock closes there; a tool that is unlocked elsewhere falls. While the lock is open
the position of the flange decides about the sensor `present`: it is read at intervals that are no
longer than the arm needs to the nearest dock.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from understudy.devices.tool_changer import FAULTS, Config
from understudy.errors import Refused
from understudy.ports.device import DeviceAction, DeviceEvent, Mount, SceneBody
from understudy.ports.faults import Faults
from understudy.ports.io import PinChange
from understudy.ports.tools import ChangerSettings, ToolDefinition
from understudy.space.pose import Pose
from understudy.space.transform import matrix
from understudy.units import DEG, MM, NS_PER_MS, nanoseconds

SHORTEST_LOOK = 10 * NS_PER_MS
FASTEST = 3.0
"""m/s: no flange is faster."""
TILT = 2.0 * DEG
"""A flange that is turned further against a dock does not fit."""
DOCK_SIZE = (0.08, 0.08, 0.01)
ADVICE: Mapping[str, str] = {
    "fell": "Look for the tool on the floor, put it into its dock, then reset.",
    "lock": "Look at compressed air and at the lock of the tool changer, then reset.",
}


class State(Struct):
    """The state of a tool changer in a snapshot. `held`: the clamped tool, 0 if none. `open`: the
    lock is open. `moves_at`: when the lock gets to the other end. `docked`: tools in their docks.
    `looks_at`: the next reading of the flange. `confirmed`: the tool that M6 has mounted since the
    lock closed."""

    held: int = 0
    open: bool = False
    moves_at: int | None = None
    docked: list[int] = []
    looks_at: int | None = None
    lock_blocked: bool = False
    unlock_blocked: bool = False
    stuck: dict[str, bool] = {}
    missing: list[int] = []
    fallen: int = 0
    confirmed: int = 0


class LockStatus(Struct, frozen=True):
    """The true state; `locked` and `present`: what the sensors say."""

    tool: int
    open: bool
    locked: bool
    present: bool
    docked: tuple[int, ...]
    fallen: int


class ToolLock:
    """A `Device` on the pins of an arm's controller; also `HasBodies` and `ReportsEvents`."""

    def __init__(self, name: str, config: Config, mount: Mount) -> None:
        self._name = name
        self._config = config
        self._io = io = mount.needed_pins()
        self._tools = mount.needed_tools()
        held = self._tools.mounted(0)
        docked = [n for n, tool in self._tools.tools().items() if tool.dock and n != held]
        self.state = State(held=held, docked=docked, confirmed=held)
        self._listeners: list[Callable[[DeviceEvent], None]] = []
        for pin in (config.locked_input, config.present_input):
            io.own(pin)
        io.retain(config.unlock_output)
        self._drive(0)
        io.on_change(self._pin_changed)

    @property
    def settings(self) -> ChangerSettings:
        c = self._config
        return ChangerSettings(
            unlock=c.unlock_output,
            locked=c.locked_input,
            present=c.present_input,
            timeout=c.sensor_timeout_ms / 1e3,
            approach=c.approach_mm * MM,
            move_speed=c.move_speed_mm_s * MM,
            dock_speed=c.dock_speed_mm_s * MM,
            near=c.tolerance_mm * MM,
        )

    def confirm_tool(self, tool: int) -> Refused | None:
        locked = self._io.digital_input(self._config.locked_input)
        present = self._io.digital_input(self._config.present_input)
        if tool and not (locked and present):
            seen = "is not locked" if present else "is not at the flange"
            return Refused(f"T{tool} {seen}: the tool changer reports no locked tool")
        if not tool and (locked or present):
            return Refused("the tool changer still reports a tool at the flange")
        before = self.state.confirmed
        if tool and before not in (0, tool):
            return Refused(f"T{tool}: the tool changer was not opened since T{before} was mounted")
        self.state.confirmed = tool
        return None

    # ── mechanics ──

    def _pin_changed(self, change: PinChange) -> None:
        state, config = self.state, self._config
        if (change.bank, change.pin) != ("DO", config.unlock_output):
            return
        if change.value == state.open:
            state.moves_at = None
            return
        delay = config.unlock_ms if change.value else config.lock_ms
        state.moves_at = change.at + nanoseconds(delay / 1e3)

    def _move(self, now: int) -> None:
        """The lock reaches its other end, unless it is blocked."""
        state = self.state
        state.moves_at = None
        opens = not state.open
        if state.unlock_blocked if opens else state.lock_blocked:
            return
        state.open = opens
        if opens:
            state.confirmed = 0
            self._leave_tool(now)
        else:
            state.held = self._tool_below(now)
            state.docked = [number for number in state.docked if number != state.held]
        state.looks_at = now if opens else None

    def _leave_tool(self, now: int) -> None:
        state = self.state
        number, state.held = state.held, 0
        if not number:
            return
        tool = self._tools.tools().get(number)
        if tool is not None and tool.dock is not None and self._fits(tool.dock, now):
            state.docked = sorted([*state.docked, number])
            return
        state.fallen = number
        text = f"T{number} was unlocked outside its dock"
        for listener in self._listeners:
            listener(DeviceEvent(now, text, f"T{number} fell off"))

    def _tool_below(self, now: int) -> int:
        """The docked tool at which the flange is; 0 if there is none."""
        tools = self._tools.tools()
        for number in self.state.docked:
            dock = tools[number].dock if number in tools else None
            if dock is not None and number not in self.state.missing and self._fits(dock, now):
                return number
        return 0

    def _fits(self, dock: Pose, now: int) -> bool:
        flange = self._tools.flange(now)
        if math.dist(flange[:3], dock[:3]) > self._config.tolerance_mm * MM:
            return False
        along = float(matrix(flange)[:3, 2] @ matrix(dock)[:3, 2])
        return along > math.cos(TILT)

    def _look(self, now: int) -> None:
        """Plans the next reading of the flange: the nearer a dock is, the sooner."""
        flange = self._tools.flange(now)
        docks = [tool.dock for tool in self._tools.tools().values() if tool.dock]
        away = min((math.dist(flange[:3], dock[:3]) for dock in docks), default=math.inf)
        if math.isinf(away):
            self.state.looks_at = None
            return
        free = nanoseconds(max(away - self._config.tolerance_mm * MM, 0.0) / FASTEST)
        self.state.looks_at = now + max(free, SHORTEST_LOOK)

    def _drive(self, now: int) -> None:
        """Sets both sensors."""
        state, config = self.state, self._config
        seen = {
            "locked": not state.open and state.held != 0,
            "present": state.held != 0 or (state.open and self._tool_below(now) != 0),
        }
        pins = {"locked": config.locked_input, "present": config.present_input}
        for sensor, level in (seen | state.stuck).items():
            if self._io.is_driven(pins[sensor]) != level:
                self._io.drive(pins[sensor], level, now)

    # ── time ──

    def next_wake(self) -> int | None:
        moments = (self.state.moves_at, self.state.looks_at)
        return min((at for at in moments if at is not None), default=None)

    def wake(self, now: int) -> None:
        state = self.state
        if state.moves_at is not None and now >= state.moves_at:
            self._move(now)
        if state.looks_at is not None and now >= state.looks_at:
            self._look(now)
        self._drive(now)

    def busy(self) -> bool:
        return self.state.moves_at is not None

    # ── people ──

    def mount_by_hand(self, now: int, tool: float) -> Refused | None:
        """A person takes the present tool off and mounts another one; 0: none."""
        number, state = round(tool), self.state
        tools = self._tools.tools()
        if number and number not in tools:
            there = ", ".join(f"T{each}" for each in sorted(tools))
            return Refused(f"there is no tool {number}; there are: {there}")
        if state.held and state.held != number and tools[state.held].dock is not None:
            state.docked = sorted([*state.docked, state.held])
        state.docked = [each for each in state.docked if each != number]
        state.held, state.open, state.looks_at, state.fallen = number, False, None, 0
        state.confirmed = 0
        self._drive(now)
        return None

    def actions(self) -> Mapping[str, DeviceAction]:
        said = "a person mounts this tool at the flange; 0: takes the present one off"
        return {"mount_by_hand": DeviceAction(said, ("tool",), self.mount_by_hand, "", False)}

    # ── faults ──

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        state = self.state
        if fault == "tool_missing":
            state.missing = sorted({*state.missing, round(parameters["tool"])})
        elif fault in ("lock_fails", "unlock_fails"):
            state.lock_blocked |= fault == "lock_fails"
            state.unlock_blocked |= fault == "unlock_fails"
        else:
            state.stuck[fault.removesuffix("_sensor_stuck")] = parameters["value"] != 0.0
        self._drive(now)
        return None

    def reset(self, now: int) -> None:
        """Clears the faults; a tool that fell, or was missing, is back in its dock. The lock
        follows its output again."""
        state = self.state
        tool = self._tools.tools().get(state.fallen)
        if tool is not None and tool.dock is not None:
            state.docked = sorted([*state.docked, state.fallen])
        state.lock_blocked = state.unlock_blocked = False
        state.stuck, state.missing, state.fallen = {}, [], 0
        if self._io.digital_output(self._config.unlock_output) != state.open:
            state.moves_at = now
        self._drive(now)

    def active_faults(self) -> Sequence[str]:
        state = self.state
        fell = [f"T{state.fallen} fell off"] if state.fallen else []
        blocked = ["the lock does not move"] if state.lock_blocked or state.unlock_blocked else []
        stuck = [f"the sensor {sensor} is stuck" for sensor in state.stuck]
        return [*fell, *blocked, *stuck, *(f"T{each} is missing" for each in state.missing)]

    def on_event(self, listener: Callable[[DeviceEvent], None]) -> None:
        self._listeners.append(listener)

    def advice(self, message: str) -> str:
        return next((said for word, said in ADVICE.items() if word in message), "")

    # ── scene ──

    def bodies(self) -> Sequence[SceneBody]:
        """The docks, and the tools that are in them."""
        tools = self._tools.tools()
        found: list[SceneBody] = []
        for number, tool in tools.items():
            if tool.dock is None:
                continue
            found.append(SceneBody(f"dock {number}", "box", _tip(tool, 1.0), DOCK_SIZE))
            if number in self.state.docked and number not in self.state.missing:
                length = max(math.dist(tool.tcp[:3], (0.0, 0.0, 0.0)), 0.01)
                place = _tip(tool, 0.5)
                name = f"{tool.name or f'T{number}'} in its dock"
                found.append(SceneBody(name, "cylinder", place, radius=0.02, height=length))
        return found

    # ── component ──

    def status(self, now: int) -> LockStatus:
        state, config = self.state, self._config
        return LockStatus(
            tool=state.held,
            open=state.open,
            locked=self._io.digital_input(config.locked_input),
            present=self._io.digital_input(config.present_input),
            docked=tuple(state.docked),
            fallen=state.fallen,
        )


def _tip(tool: ToolDefinition, share: float) -> tuple[float, float, float]:
    """The point at this share of the way from the flange to the tip of a docked tool."""
    assert tool.dock is not None
    x, y, z = (matrix(tool.dock) @ [*(share * v for v in tool.tcp[:3]), 1.0])[:3].tolist()
    return x, y, z
