"""Steps that move: units, targets, going home, and the motion modes."""

import math

from understudy.errors import Refused
from understudy.gcode import faults
from understudy.gcode.arcs import Circle, circle
from understudy.gcode.commands import ARCS, PROBES, SYNCHRONIZED, UNOFFERED
from understudy.gcode.dialect import MM_PER_INCH, Axes, Frame
from understudy.gcode.requests import (
    ArcMove,
    AxisArc,
    AxisMove,
    GoHome,
    JointArc,
    JointMove,
    LineMove,
    Move,
    Probe,
)
from understudy.gcode.work import Work, six
from understudy.space.pose import Pose
from understudy.units import DEG, MINUTE, MM


def choose_frame(work: Work) -> Refused | None:
    """In dialects with two frames: is it the tool or the joints that this line speaks of?"""
    if not work.dialect.two_frames:
        return None
    values = work.block.values
    tool = next((letter for letter in "XYZ" if letter in values), None)
    joint = next((letter for letter in "UVW" if letter in values), None)
    if tool and joint:
        message = f"is a joint and {tool} moves the tool: one line is either joint or Cartesian"
        return work.refuse(faults.AXIS_CONFLICT, joint, message)
    if work.frame == "axes" and work.named and work.axis == "motion" and work.motion in ARCS:
        return work.refuse(faults.UNSUPPORTED, work.motion, "moves the tool: name X, Y or Z")
    return None


def convert_units(work: Work) -> Refused | None:
    if work.imperial:
        rotary = work.dialect.is_rotary(work.frame)
        for axis, value in work.named.items():
            if not rotary[axis]:
                work.named[axis] = work.exact(value * MM_PER_INCH)
    if work.named or work.axis == "motion":
        work.here = work.position.axes if work.frame == "axes" else work.position.pose
    return None


def scale(work: Work) -> Refused | None:
    if work.command("scaling") == "G50":
        return None
    if not any(work.has(letter) for letter in "PIJK"):
        return work.refuse(faults.NO_AXIS_WORDS, "G51", "needs scale factors")
    return work.refuse(faults.UNSUPPORTED, "G51", "there is no scaling on this controller")


def aim(work: Work) -> Refused | None:
    """The target in machine coordinates; what is not named stays where it is."""
    if work.command("nonmodal") in ("G10", "G92") or work.axis == "tool offset":
        return None
    in_machine = work.dialect.two_frames and work.frame == "axes"
    absolute = in_machine or work.command("nonmodal") == "G53"
    target = list(work.here)
    for axis, value in work.named.items():
        if work.incremental and work.command("nonmodal") != "G53":
            shift = work.here[axis]
        else:
            shift = 0.0 if absolute else work.offset(axis)
        target[axis] = work.exact(value + shift) if shift else value
    work.target = six(target)
    return None


def go_home(work: Work) -> Refused | None:
    """G28 and G30, past the named way point; then only the named axes go home."""
    name = work.command("nonmodal")
    if name == "G53" and work.motion not in ("G0", "G1"):
        return work.refuse(faults.G53_MOTION, "G53", f"goes with G0 or G1, not with {work.motion}")
    if name not in ("G28", "G30"):
        return None
    home = work.old.g28 if name == "G28" else work.old.g30
    if work.named:
        work.requests.append(_straight(work, work.target, work.frame, rapid=True))
        if work.frame == "axes":
            here = work.here
            home = six([home[axis] if axis in work.named else here[axis] for axis in range(6)])
    else:
        work.axis = ""
    work.requests.append(GoHome(name, _straight(work, home, "axes", rapid=True)))
    work.reached, work.reached_frame = home, "axes"
    return None


def move(work: Work) -> Refused | None:
    if work.motion == "G80":
        if work.named and work.axis != "nonmodal":
            return work.refuse(faults.AXIS_WORDS, _first_axis(work), "moves nothing under G80")
        return None
    if work.axis != "motion":
        return None
    if work.motion == "G0":
        return _go_straight(work)
    if work.motion in SYNCHRONIZED:
        return work.refuse(faults.UNSUPPORTED, work.motion, "there is no encoder on the spindle")
    if work.feed == 0:
        return work.refuse(faults.NO_FEED, work.motion, "needs a feed: F is 0")
    if work.motion in UNOFFERED:
        return work.refuse(faults.UNSUPPORTED, work.motion, "is not offered by this controller")
    if work.motion in ARCS:
        return _go_round(work)
    if work.motion in PROBES:
        return _probe(work)
    return _go_straight(work)


def _go_straight(work: Work) -> Refused | None:
    if not work.named:
        work.axis = ""
        return None
    work.requests.append(_straight(work, work.target, work.frame, rapid=work.motion == "G0"))
    work.reached, work.reached_frame = work.target, work.frame
    return None


def _go_round(work: Work) -> Refused | None:
    found = circle(work)
    if isinstance(found, Refused):
        return found
    if found.radius == 0:
        work.requests.append(_straight(work, work.target, work.frame))
    else:
        work.requests.append(_round(work, found))
    work.reached, work.reached_frame = work.target, work.frame
    return None


def _probe(work: Work) -> Refused | None:
    if not work.named:
        return work.refuse(faults.NO_AXIS_WORDS, work.motion, "needs axis words")
    if work.here == work.target:
        return work.refuse(faults.BAD_TARGET, work.motion, "needs a target that is not here")
    if work.has("P"):
        if work.value("P") != 0:
            return work.refuse(faults.RANGE, "P", "there is one probe, number 0")
        work.use("P")
    toward, required = work.motion in ("G38.2", "G38.3"), work.motion in ("G38.2", "G38.4")
    work.requests.append(Probe(_straight(work, work.target, work.frame), toward, required))
    work.reached, work.reached_frame = work.target, work.frame
    return None


def _first_axis(work: Work) -> str:
    return next(letter for letter in work.block.values if letter in work.dialect.letters)


# ── into the units of who is asked ──────────────────────────────────────────────────────────────


def _straight(work: Work, target: Axes, frame: Frame, *, rapid: bool = False) -> Move:
    inverse_time = work.feed_mode == "G93" and not rapid
    if not work.dialect.arm:
        return AxisMove(target, 0.0 if rapid else _per_minute(work), rapid, inverse_time)
    duration = MINUTE / work.feed if inverse_time else None
    linear, angular = _speeds(work) if not (rapid or inverse_time) else (None, None)
    if frame == "axes":
        return JointMove(_radians(target), angular, duration)
    return LineMove(_pose(target), linear, angular, duration)


def _round(work: Work, circle: Circle) -> Move:
    plane, centre, radius, angle = circle
    inverse_time = work.feed_mode == "G93"
    if not work.dialect.arm:
        feed = _per_minute(work)
        return AxisArc(work.target, plane, centre, radius, angle, feed, inverse_time)
    duration = MINUTE / work.feed if inverse_time else None
    linear, angular = (None, None) if inverse_time else _speeds(work)
    unit = DEG if work.frame == "axes" else MM
    centre, radius = (centre[0] * unit, centre[1] * unit), radius * unit
    if work.frame == "axes":
        joints = _radians(work.target)
        return JointArc(joints, plane, centre, radius, angle, angular, duration)
    return ArcMove(_pose(work.target), plane, centre, radius, angle, linear, duration)


def _per_minute(work: Work) -> float:
    scaled = work.dialect.feed_per_second and work.feed_mode != "G93"
    return work.feed * MINUTE if scaled else work.feed


def _speeds(work: Work) -> tuple[float, float]:
    """The feed as m/s and as rad/s."""
    per_second = work.feed if work.dialect.feed_per_second else work.feed / MINUTE
    return per_second * MM, per_second * DEG


def _radians(target: Axes) -> Axes:
    return six([math.radians(value) for value in target])


def _pose(target: Axes) -> Pose:
    x, y, z, rx, ry, rz = target
    return Pose(x * MM, y * MM, z * MM, *(math.radians(angle) for angle in (rx, ry, rz)))
