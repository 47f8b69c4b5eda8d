"""Values of the HMI link and the state socket: messages, views, answers that take time.

The link's message, in both directions, as JSON:

    {"type": "COMMAND", "id": 7, "timestamp": 1754.2, "payload": {"command": "stop"}}

`timestamp` is the sender's wall clock in seconds; the receiver ignores it. A reply repeats the id.
A request may also have `secret`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from msgspec import UNSET, Struct, UnsetType

from understudy.errors import Refused

PING, PONG = "PING", "PONG"
GET_STATUS, STATUS = "GET_STATUS", "STATUS"
GET_JOINT_POSITIONS, JOINT_POSITIONS = "GET_JOINT_POSITIONS", "JOINT_POSITIONS"
COMMAND, RESULT = "COMMAND", "RESULT"
ERROR = "ERROR"

UNKNOWN_COMMAND, BAD_PARAMETERS, NOT_ALLOWED, REFUSED = 1, 2, 3, 4
"""Codes of the command table; a command may have codes of its own."""
FILE_EXISTS = 5
"""A command that writes a file was not to replace one."""
NOT_A_REQUEST, UNKNOWN_TYPE, TOO_MUCH_AT_ONCE, BROKEN = 10, 11, 12, 13
"""Codes of the link."""
NO_ANSWER, NOT_CONNECTED = 20, 21
"""Codes that the client side of the link adds."""


class LinkMessage(Struct, frozen=True):
    """A message of the HMI link, in either direction."""

    type: str
    id: Any = None
    timestamp: float | None = None
    payload: dict[str, Any] = {}


class LinkRequest(LinkMessage, frozen=True):
    """A message to a cell. `secret`: of the run, or the token of the cell; needed where the link
    can be reached from other machines, and for orders to a REAL robot."""

    secret: str | None = None


# ── answers that take time ──────────────────────────────────────────────────────────────────────


class Later:
    """The answer of a slow command; listeners get it when it is ready."""

    def __init__(self) -> None:
        self._answer: Any = None
        self._there = False
        self._listeners: list[Callable[[Any], None]] = []

    def then(self, listener: Callable[[Any], None]) -> None:
        """Calls ``listener`` with the answer, which may be a `Refused`; at once if it is ready."""
        if self._there:
            listener(self._answer)
        else:
            self._listeners.append(listener)

    def turned(self, into: Callable[[Any], Any]) -> "Later":
        """A later answer made of this one by ``into``, which may need time, too; a refusal is
        passed on."""
        made = Later()

        def pass_on(answer: Any) -> None:
            answer = answer if isinstance(answer, Refused) else into(answer)
            if isinstance(answer, Later):
                answer.then(made.settle)
            else:
                made.settle(answer)

        self.then(pass_on)
        return made

    def mapped(self, into: Callable[[Any], Any]) -> "Later":
        """A later answer made of this one by ``into``, which is given refusals, too."""
        made = Later()
        self.then(lambda answer: made.settle(into(answer)))
        return made

    def settle(self, answer: Any) -> None:
        """Sets the answer and calls the listeners; later calls are ignored."""
        if self._there:
            return
        self._answer, self._there = answer, True
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener(answer)


# ── what a page sees ────────────────────────────────────────────────────────────────────────────


class Pins(Struct, frozen=True):
    """Bit n is pin n."""

    di: int = 0
    do: int = 0


class RobotView(Struct, frozen=True):
    """A robot at one time, as pages draw it: rad and m. `tcp`: x y z rx ry rz.

    `ghost`: the joint target while the robot moves. `arc`: the arc burns. `linear`: indices
    of the axes in m; the others are in rad. `opening`: between the fingers of its gripper, in m,
    where it has any.
    """

    q: Sequence[float]
    tcp: Sequence[float]
    state: str
    moving: bool = False
    tool: int = 0
    line: int = 0
    ghost: Sequence[float] | None = None
    arc: bool = False
    io: Pins = Pins()
    linear: Sequence[int] = ()
    opening: float | UnsetType = UNSET


Trail = tuple[int, Sequence[tuple[float, float, float]], int]
"""Where the arc burned, in m: the number of known points, the points after them, and the version.

A trail that was cleared, thinned out or restored has another version. 0: these are all points.
"""
Known = int | tuple[int, int]
"""Number of known points of a trail, with its version if known."""


@runtime_checkable
class Viewed(Protocol):
    """A robot that pages can draw; reading the view changes nothing."""

    def view(self, now: int) -> RobotView: ...


@runtime_checkable
class Trailing(Protocol):
    """A part of a robot that leaves a trail."""

    def trail_since(self, known: Known) -> Trail:
        """The points after those that are known already."""
        ...


class Touch(Protocol):
    """A contact: the `link` of a robot (or its tool) and the `object` it touches, which may be a
    link of the same robot."""

    @property
    def link(self) -> str: ...

    @property
    def object(self) -> str: ...


@runtime_checkable
class Touching(Protocol):
    """A part that knows the contacts that the operator has not cleared, ended ones too."""

    def uncleared(self) -> Sequence[Touch]: ...


class PanelRow(Struct, frozen=True):
    """A value on the panel of a device; yes and no are drawn as a lamp, `state` as a colour."""

    label: str
    value: bool | int | float | str
    unit: str = ""
    state: Literal["", "ok", "warn", "fault"] = ""


@runtime_checkable
class HasPanel(Protocol):
    """A device or a robot with a panel; reading it changes nothing."""

    def panel(self, now: int) -> Sequence[PanelRow]:
        """The rows of the panel, the same labels at any time."""
        ...

    def active_faults(self) -> Sequence[str]:
        """The faults that are active now, in the words of their alarm events."""
        ...


class CellView(Struct, frozen=True):
    """State of all robots at one time: `t` simulated, `real` wall seconds since the start.

    `parts`: another number means that the answer of the query `parts` has changed; 0 without parts.
    """

    seq: int
    t: float
    real: float
    rate: float | str
    robots: Mapping[str, RobotView]
    trail: Mapping[str, Trail] = {}
    contacts: Sequence[Any] = ()
    parts: int = 0


class GroupFrame(Struct, frozen=True):
    """All mobile robots at one time, as `ports.fleet.FleetColumns`: each column is an array of
    little-endian numbers. `floor`: another number means that the query `fleet` has another answer.
    `connected`, `waiting`: of the connection to NATS."""

    seq: int
    t: float
    real: float
    rate: float | str
    floor: int
    connected: bool
    waiting: int
    count: int
    pose: bytes
    speed: bytes
    goal: bytes
    battery: bytes
    status: bytes
    stop: bytes
    flags: bytes


class LaserReading(NamedTuple):
    """What a laser scanner sees: a distance in metres for each ray, from `start` to `end` (rad);
    infinite where nothing is seen. `place`: x, y and yaw of the scanner on its robot."""

    name: str
    place: tuple[float, float, float]
    start: float
    end: float
    ranges: Sequence[float]


@runtime_checkable
class HasLasers(Protocol):
    """What can show the laser scanners of a robot."""

    def scans(self, robot: str) -> Sequence[LaserReading]: ...


class SeenTogether(Protocol):
    """Robots, perhaps thousands, that doors and pages read together."""

    def names(self) -> Sequence[str]: ...

    def views(self) -> Mapping[str, RobotView]: ...

    def columns(self) -> Any:
        """A named tuple with an array for each column of `GroupFrame`."""
        ...

    def floor_version(self) -> int: ...

    def link(self) -> Any:
        """`connected` and `waiting`, as in `GroupFrame`."""
        ...


@runtime_checkable
class HasSeenTogether(Protocol):
    """The component of a cell that shows such robots."""

    @property
    def seen_together(self) -> SeenTogether: ...


@runtime_checkable
class MarksScene(Protocol):
    """A component that the scene draws at its robot: the view of a camera (`camera`), the places of
    pallets (`pallets`)."""

    def scene_marks(self) -> dict[str, Any]: ...


NO_GROUP = Refused("this cell has no mobile robots")


class Watch(Protocol):
    """Views of the cell for the doors, at the present time of the clock."""

    def look(self, trail_from: Mapping[str, Known] | None = None) -> CellView:
        """``trail_from``: the known part of each trail; without it the view has no trails."""
        ...


@runtime_checkable
class WatchesGroup(Protocol):
    """A `Watch` of a cell that may have mobile robots."""

    def look_at_group(self) -> GroupFrame | Refused: ...
