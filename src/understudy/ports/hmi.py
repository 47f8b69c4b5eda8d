"""Values of the HMI link and the state socket: messages, views, answers that take time.

The link's message, in both directions, as JSON:

    {"type": "COMMAND", "id": 7, "timestamp": 1754.2, "payload": {"command": "stop"}}

`timestamp` is the sender's wall clock in seconds; the receiver ignores it. A reply repeats the id.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct

from understudy.errors import Refused

PING, PONG = "PING", "PONG"
GET_STATUS, STATUS = "GET_STATUS", "STATUS"
GET_JOINT_POSITIONS, JOINT_POSITIONS = "GET_JOINT_POSITIONS", "JOINT_POSITIONS"
COMMAND, RESULT = "COMMAND", "RESULT"
ERROR = "ERROR"

UNKNOWN_COMMAND, BAD_PARAMETERS, NOT_ALLOWED, REFUSED = 1, 2, 3, 4
"""What the desk refuses with; a command may have codes of its own."""
NOT_A_REQUEST, UNKNOWN_TYPE, TOO_MUCH_AT_ONCE, BROKEN = 10, 11, 12, 13
"""What the link refuses with."""
NO_ANSWER, NOT_CONNECTED = 20, 21
"""What the client's side says by itself."""


class LinkMessage(Struct, frozen=True):
    """A message of the HMI link, in either direction."""

    type: str
    id: Any = None
    timestamp: float | None = None
    payload: dict[str, Any] = {}


# ── answers that wait ───────────────────────────────────────────────────────────────────────────


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
        """The answer made of this one; a refusal stays what it is."""
        made = Later()
        self.then(lambda a: made.settle(a if isinstance(a, Refused) else into(a)))
        return made

    def settle(self, answer: Any) -> None:
        """Here it is; the first answer counts."""
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
    """A robot at a moment, for the eye: rad and m (prismatic axes: m). `tcp`: x y z rx ry rz.

    `ghost`: where the joints go, while they go there. `arc`: it burns. `linear`: how many of the
    axes, from the first on, are prismatic.
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
    linear: int = 0


Trail = tuple[int, Sequence[tuple[float, float, float]], int]
"""Where the arc burned, in m: the number of known points, the points after them, and the version.

A trail that was cleared, thinned out or restored has another version. 0: these are all points.
"""
Known = int | tuple[int, int]
"""How many points of a trail are known; better with its version."""


@runtime_checkable
class Viewed(Protocol):
    """A robot that can be looked at; looking changes nothing."""

    def view(self, now: int) -> RobotView: ...


@runtime_checkable
class Trailing(Protocol):
    """A part of a robot that leaves a trail."""

    def trail_since(self, known: Known) -> Trail:
        """What is to be added to the points that are known already."""
        ...


class Touch(Protocol):
    """`link` of a robot, or its tool, and the `object` it touches: a link of its own too."""

    @property
    def link(self) -> str: ...

    @property
    def object(self) -> str: ...


@runtime_checkable
class Touching(Protocol):
    """A part that knows the contacts that last and have not been cleared."""

    def contacts(self) -> Sequence[Touch]: ...


class PanelRow(Struct, frozen=True):
    """A value on the panel of a device; yes and no are drawn as a lamp, `state` as a colour."""

    label: str
    value: bool | int | float | str
    unit: str = ""
    state: Literal["", "ok", "warn", "fault"] = ""


@runtime_checkable
class HasPanel(Protocol):
    """A device with a panel; reading it changes nothing."""

    def panel(self, now: int) -> Sequence[PanelRow]:
        """The rows of the panel, the same labels at any time."""
        ...

    def active_faults(self) -> Sequence[str]:
        """The faults that are active now, in the words of their alarm events."""
        ...


class CellView(Struct, frozen=True):
    """Everything at one moment: `t` simulated, `real` wall seconds since the cell started."""

    seq: int
    t: float
    real: float
    rate: float | str
    robots: Mapping[str, RobotView]
    trail: Mapping[str, Trail] = {}
    contacts: Sequence[Any] = ()


class Watch(Protocol):
    """Whoever looks at the cell for the doors: brings it to the clock's time first."""

    def look(self, trail_from: Mapping[str, Known] | None = None) -> CellView:
        """``trail_from``: the known part of each trail; without it the view has no trails."""
        ...
