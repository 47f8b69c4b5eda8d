"""Contact: which parts touched, where, when, and on which line of the program."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from msgspec import Struct

from understudy.units import MM, seconds

if TYPE_CHECKING:
    from understudy.space.collision.detector import CollisionResult

WIRE_LINES = 1 << 40
"""Lines received over a wire are numbered from here; reports subtract it."""
ContactKind = Literal["collision", "self_collision", "zone"]
Names = tuple[str, str]
Pair = tuple[int, int]
"""The numbers of two shapes in the world of a detector."""


class Contact(Struct, frozen=True):
    """A contact of two shapes.

    `link`: the link or tool of the arm; `object`: the other shape, which can be a link of the same
    arm. Point and depth in metres, in the world; `depth` is the deepest overlap on the line. `at`
    in ns.
    """

    link: str
    object: str
    kind: ContactKind
    point: tuple[float, float, float]
    depth: float
    line: int = 0
    at: int = 0

    @property
    def names(self) -> Names:
        return self.link, self.object

    def text(self) -> str:
        """The contact as a sentence."""
        x, y, z = (round(value / MM, 1) + 0.0 for value in self.point)
        what = {"zone": "reaches into zone", "self_collision": "touches its own"}
        where = f"({x:g}, {y:g}, {z:g}) mm" + (f", line {self.line}" if self.line else "")
        did = what.get(self.kind, "collides with")
        return f"{self.link} {did} {self.object} at {where}, {seconds(self.at):.3f} s"


class ContactReport(Struct, frozen=True):
    """A contact in mm and s, for queries."""

    link: str
    object: str
    kind: ContactKind
    point_mm: tuple[float, float, float]
    depth_mm: float
    line: int
    time_s: float


def report(contact: Contact) -> ContactReport:
    x, y, z = (value / MM for value in contact.point)
    depth, time = contact.depth / MM, seconds(contact.at)
    where, line = (x, y, z), contact.line
    return ContactReport(contact.link, contact.object, contact.kind, where, depth, line, time)


def report_of(result: "CollisionResult") -> ContactReport:
    """The report of two overlapping objects."""
    x, y, z = (value / MM for value in result.contact_point)
    one, other = result.object1_name, result.object2_name
    depth = result.penetration_depth / MM
    return ContactReport(one, other, "collision", (x, y, z), depth, 0, 0.0)


CollisionListener = Callable[[Contact], None]


@runtime_checkable
class ReportsContacts(Protocol):
    """A part that reports every contact: the collision watch of a robot."""

    def on_collision(self, listener: CollisionListener) -> None: ...

    def uncleared(self) -> Sequence[Contact]:
        """The contacts that the operator has not cleared, ended ones too."""
        ...
