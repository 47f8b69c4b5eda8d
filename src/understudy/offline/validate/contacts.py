"""What is said of parts that touch: one violation per thing that is touched, with all the parts
that touch it."""

from collections.abc import Iterable, Sequence

from understudy.offline.validate.report import Contact, Finding, Kind
from understudy.space.collision.sweep import ContactSpot
from understudy.space.model.environment import Environment
from understudy.units import MM

Thing = tuple[str, ...]
"""What is touched: the kind of contact, and with what if it is not the arm itself."""
NAMED = 3
"""So many further parts are named in words; the report has them all."""
Seen = tuple[ContactSpot, float]
"""A place on the path, and when the arm is there."""


class Contacts:
    """Puts contacts into words, in a cell with these things around."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def kind(self, spot: ContactSpot) -> Kind:
        if spot.self_collision:
            return "self_collision"
        names = (spot.object1_name, spot.object2_name)
        return "zone" if any(map(self._environment.is_zone, names)) else "collision"

    def touches(self, line: int, seen: Sequence[Seen]) -> list[Finding]:
        """All that is touched on a line, in the order in which it is."""
        groups: dict[Thing, list[Seen]] = {}
        for spot, when in seen:
            key = thing(self.kind(spot), (spot.object1_name, spot.object2_name))
            groups.setdefault(key, []).append((spot, when))
        return [self._touched(line, group) for group in groups.values()]

    def closeness(self, line: int, seen: Seen, least: float) -> Finding:
        """Parts come closer than is allowed, or than can be told from a contact."""
        spot, when = seen
        said = f"comes closer than {least / MM:g} mm to {spot.object2_name} {_where(spot, when)}"
        return self._finding(line, seen, f"{spot.object1_name} {said}")

    def crash(self, line: int, seen: Seen) -> Finding:
        """What a stop off the path would bring about."""
        spot, _ = seen
        does = "would enter the zone" if self.kind(spot) == "zone" else "would touch"
        return self._finding(
            line, seen, f"stopped here, each joint by itself, {_told(spot, does)} {_where(*seen)}"
        )

    def _touched(self, line: int, group: Sequence[Seen]) -> Finding:
        first, when = group[0]
        does = "enters the zone" if self.kind(first) == "zone" else "touches"
        said = f"{_told(first, does)} {_where(first, when)}, up to {first.depth / MM:.1f} mm deep"
        also = tuple(_contact(spot, at) for spot, at in group[1:])
        if also:
            said += f"; so {'does' if len(also) == 1 else 'do'} {_parts(also, first)}"
        return self._finding(line, group[0], said, also)

    def _finding(self, line: int, seen: Seen, said: str, also: tuple[Contact, ...] = ()) -> Finding:
        return Finding(
            line,
            self.kind(seen[0]),
            f"line {line}: {said}",
            seen[1],
            contact=_contact(*seen),
            also=also,
        )


def thing(kind: Kind, objects: tuple[str, str]) -> Thing:
    """By what two contacts are told to be one."""
    return (kind,) if kind == "self_collision" else (kind, objects[1])


def things(found: Iterable[Finding]) -> set[Thing]:
    return {thing(each.kind, each.contact.objects) for each in found if each.contact}


def _contact(spot: ContactSpot, when: float) -> Contact:
    return Contact((spot.object1_name, spot.object2_name), spot.point, spot.depth, when)


def _told(spot: ContactSpot, does: str) -> str:
    return f"{spot.object1_name} {does} {spot.object2_name}"


def _where(spot: ContactSpot, when: float) -> str:
    x, y, z = (value / MM for value in spot.point)
    return f"at ({x:.1f}, {y:.1f}, {z:.1f}) mm, {when:.3f} s"


def _parts(also: Sequence[Contact], first: ContactSpot) -> str:
    """The parts that touch the same; both where the arm touches itself elsewhere."""
    same = first.object2_name
    parts = [
        each.objects[0] if each.objects[1] == same else " with ".join(each.objects) for each in also
    ]
    more = [f"{len(parts) - NAMED} more"] if len(parts) > NAMED else []
    return ", ".join(parts[:NAMED] + more)
