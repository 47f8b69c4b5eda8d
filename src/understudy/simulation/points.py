"""Points: the taught points of a robot, by name."""

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
from msgspec import Struct

from understudy.errors import Refused, unknown
from understudy.ports import Joints
from understudy.space.pose import Pose

MOST_POINTS = 1000
MOST_UNDONE = 50
"""Changes that can be undone."""
LONGEST_NAME = 64


class Point(Struct, frozen=True):
    """A taught point: the joints (rad; empty for a robot without joints) and the pose (m, rad)."""

    name: str
    joints: Joints
    pose: Pose


class Change(NamedTuple):
    """A change: its command and point, and all points before it."""

    command: str
    name: str
    before: dict[str, Point]


class Points:
    """A `Component` that acts only when it is called; the points are in the order of teaching.

    The last changes can be undone; snapshots hold the points alone.
    """

    def __init__(self, robot: str) -> None:
        self._robot = robot
        self._points: dict[str, Point] = {}
        self._changes: deque[Change] = deque(maxlen=MOST_UNDONE)

    def teach(self, name: str, joints: Joints, pose: Pose) -> Refused | None:
        """Adds a point under a new name."""
        if refused := self._unfit(name):
            return refused
        if len(self._points) >= MOST_POINTS:
            return Refused(f"{self._robot} has {MOST_POINTS} points already; delete some")
        self._note("teach_point", name)
        self._points[name] = Point(name, joints, pose)
        return None

    def touch_up(self, name: str, joints: Joints, pose: Pose) -> Refused | None:
        """Replaces a point by the present position of the robot."""
        return self._replace("touch_up", name, joints, pose)

    def set(self, name: str, joints: Joints, pose: Pose) -> Refused | None:
        """Replaces a point by typed coordinates."""
        return self._replace("set_point", name, joints, pose)

    def _replace(self, command: str, name: str, joints: Joints, pose: Pose) -> Refused | None:
        if isinstance(found := self.find(name), Refused):
            return found
        self._note(command, name)
        self._points[name] = Point(name, joints, pose)
        return None

    def rename(self, name: str, to: str) -> Refused | None:
        if isinstance(found := self.find(name), Refused):
            return found
        if refused := self._unfit(to):
            return refused
        self._note("rename_point", name)
        self._points = {
            to if key == name else key: Point(to, p.joints, p.pose) if key == name else p
            for key, p in self._points.items()
        }
        return None

    def delete(self, name: str) -> Refused | None:
        if isinstance(found := self.find(name), Refused):
            return found
        self._note("delete_point", name)
        del self._points[name]
        return None

    def put(self, points: Iterable[Point]) -> None:
        """Replaces all points."""
        self._note("load_project", "")
        self._points = {point.name: point for point in points}

    def undo(self) -> Change | Refused:
        """Takes the last change back."""
        if not self._changes:
            return Refused(f"{self._robot}: no change of a point can be undone")
        last = self._changes.pop()
        self._points = last.before
        return last

    @property
    def last_change(self) -> Change | None:
        """The change that `undo` would take back."""
        return self._changes[-1] if self._changes else None

    def _note(self, command: str, name: str) -> None:
        self._changes.append(Change(command, name, dict(self._points)))

    def find(self, name: str) -> Point | Refused:
        if name in self._points:
            return self._points[name]
        return Refused(str(unknown(f"point of {self._robot}", name, self._points)))

    def all(self) -> tuple[Point, ...]:
        return tuple(self._points.values())

    def _unfit(self, name: str) -> Refused | None:
        if not name.strip() or len(name) > LONGEST_NAME:
            return Refused(f"{name!r} is not a name: 1…{LONGEST_NAME} characters, not all blank")
        if name in self._points:
            return Refused(f"{self._robot} has a point {name!r} already; touch_up moves it")
        return None

    # ── part ──

    def status(self, now: int) -> dict[str, int]:
        """`checksum`: changes with every change of a point."""
        return {"points": len(self._points), "checksum": crc32(msgspec.json.encode(self.save()))}

    def save(self) -> list[Point]:
        return list(self._points.values())

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, list[Point])
        self._changes.clear()
        self._points = {point.name: point for point in saved}
