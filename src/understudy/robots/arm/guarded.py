"""An arm's drives as its collision watch sees them."""

from collections.abc import Callable
from dataclasses import dataclass

from understudy.errors import Refused
from understudy.motion.plan import Plan
from understudy.robots.arm import refusals as why
from understudy.robots.arm.drives import Drives
from understudy.simulation.collision.contact import Contact


@dataclass(frozen=True)
class Guarded:
    """`Mover` of a watch; ``trip`` lets the drives drop until reset."""

    drives: Drives
    trip: Callable[[Refused, int], Refused | None]

    @property
    def plan(self) -> Plan:
        return self.drives.plan

    @property
    def first(self) -> int:
        return self.drives.first

    @property
    def held(self) -> bool:
        return self.drives.held

    @property
    def tool(self) -> int:
        return self.drives.tool

    def collided(self, contact: Contact, now: int) -> None:
        self.trip(Refused(f"{contact.text()}: reset first", why.HARD_LIMIT), now)
