"""The course of the motion: the leg being run and those known after it, on one law of time.

Whenever another leg becomes known or known ones are dropped, the rest of the course is planned anew
from the state at that moment. A move passes into the next at a share of the lower of their speeds
(C_VEL): it brakes to that share and does not stand. The corner itself is not cut.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from understudy.motion.lookahead import ENDLESS
from understudy.motion.path import Floats, Path, joined
from understudy.motion.plan import PathPosition, Plan, TimeLaw
from understudy.motion.stream import trapezoid_law
from understudy.motion.tool_path import IN_PLACE
from understudy.ports import State
from understudy.robots.kuka.moves import Leg
from understudy.space.kinematics.chain import Chain
from understudy.space.pose import Pose
from understudy.space.transform import pose


class Sample(NamedTuple):
    """The axes (rad), the tool in the base of the leg being run, and the tip's speed (m/s)."""

    axes: Floats
    pose: Pose
    speed: float


@dataclass(frozen=True, eq=False)
class Course:
    """Immutable; at least one leg. Times are seconds on the cell's axis."""

    legs: tuple[Leg, ...]
    plan: Plan

    @cached_property
    def ends(self) -> float:
        """When the first leg is done."""
        law = self.plan.law
        after = int(np.searchsorted(law.piece, len(self.legs[0].path)))
        return float(law.begins[after])

    def at(self, t: float, chain: Chain) -> Sample:
        """On the first leg, which is the one being run."""
        leg = self.legs[0]
        motion = self.plan.at(t)
        if leg.way is None:
            tip = leg.frames.tcp(chain.flange(motion.position))
            moved = chain.jacobian(motion.position, leg.frames.tool)[:3] @ motion.velocity
            return Sample(motion.position, pose(tip), float(np.linalg.norm(moved)))
        here = self.plan.place(t)
        run = float(leg.path.length[: here.piece].sum()) + here.s
        if here.piece >= len(leg.path):
            run = leg.way.length
        tip = leg.way.poses(np.array([min(run / leg.way.length, 1.0)]))[0]
        speed = here.v if leg.way.distance > IN_PLACE else 0.0
        return Sample(motion.position, pose(tip), speed)

    def to_state(self) -> State:
        """Without the legs: they can be had from their records again."""
        return {"law": self.plan.law.to_state(), "target": self.plan.target.tolist()}


def begin(leg: Leg, t: float, blend: float) -> Course:
    """From rest."""
    return through((leg,), t, blend)


def through(legs: tuple[Leg, ...], t: float, blend: float) -> Course:
    """From rest, all of them known from the beginning."""
    return _planned(legs, PathPosition(0), t, blend)


def extended(course: Course, leg: Leg, t: float, blend: float) -> Course:
    """One more leg after those that are known."""
    return _planned((*course.legs, leg), course.plan.place(t), t, blend)


def shortened(course: Course, t: float, blend: float) -> Course:
    """The first leg alone; what was known after it is dropped."""
    return _planned(course.legs[:1], course.plan.place(t), t, blend)


def advanced(course: Course, t: float, blend: float) -> Course:
    """The first leg is done: from here on the second is the first."""
    done = len(course.legs[0].path)
    here = course.plan.place(t)
    on = here._replace(piece=here.piece - done) if here.piece >= done else PathPosition(0, v=here.v)
    return _planned(course.legs[1:], on, t, blend)


def resumed(course: Course, t: float, blend: float) -> Course:
    """Onwards from rest, from where the course was cut off."""
    here = course.plan.place(t)
    return _planned(course.legs, PathPosition(here.piece, here.s), t, blend)


def halted(course: Course, t: float) -> Course:
    """At rest from this instant on, wherever that is."""
    return Course(course.legs, course.plan.until(t))


def restored(legs: tuple[Leg, ...], state: State, blend: float) -> Course:
    """From the legs and what `to_state` gave."""
    path = _path(legs, blend)
    return Course(legs, Plan(path, TimeLaw.from_state(state["law"]), np.array(state["target"])))


def _planned(legs: tuple[Leg, ...], place: PathPosition, t: float, blend: float) -> Course:
    path = _path(legs, blend)
    first = min(place.piece, len(path) - 1)
    rest = path.rows(first, len(path))
    law = trapezoid_law(rest, rest.nominal(), place, at=t, window=ENDLESS)
    return Course(legs, Plan(path, law.numbered(first), path.end[-1]))


def _path(legs: tuple[Leg, ...], blend: float) -> Path:
    pairs = pairwise(legs)
    entries = (0.0, *((blend * min(a.pace, b.pace)) ** 2 for a, b in pairs))
    return joined([leg.path.with_entry(e) for leg, e in zip(legs, entries, strict=True)])
