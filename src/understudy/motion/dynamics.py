"""Joint torques of a motion by the recursive Newton-Euler algorithm, for many samples at once.

SI units. Frames are those of space.kinematics.chain: z of each joint is its axis. The payload at
the flange is part of the last body. Joint inertia (motor and gear, at the joint) and viscous
friction are added to the torques of the bodies.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from understudy.motion.path import Floats, floats
from understudy.motion.plan import Columns, Motion, Plan, motions_at, segment_at
from understudy.space.compiled import compiled
from understudy.space.kinematics.chain import Chain, Mass, combined

GRAVITY = (0.0, 0.0, -9.81)
"""In the axes of the cell, whose z is up."""


def gravity_at(foot: Floats) -> Floats:
    """Gravity in the axes of a base that is mounted in the cell with the pose ``foot`` (4×4)."""
    return np.asarray(foot[:3, :3].T @ np.array(GRAVITY))


@dataclass(frozen=True, slots=True, eq=False)
class Payload:
    """Load at the flange: kg, centre of mass in the flange frame, inertia tensor about it."""

    mass: float
    com: ArrayLike = (0.0, 0.0, 0.0)
    inertia: ArrayLike = ((0.0,) * 3,) * 3


@dataclass(frozen=True, slots=True)
class Overload:
    """A joint whose torque exceeds its limit: the time and torque of the worst moment."""

    joint: str
    time: float
    torque: float
    limit: float
    unit: str = "Nm"

    def __str__(self) -> str:
        share = 100.0 * abs(self.torque) / self.limit
        return (
            f"{self.joint} needs {self.torque:.1f} {self.unit} at {self.time:.3f} s, "
            f"{self.limit:.1f} {self.unit} are allowed ({share:.0f} %)"
        )


class Loads(NamedTuple):
    """Masses of an arm for the kernels, and how far they are from the joints at most.

    `offset`: distance of each joint from the one before; `aside`: of the centre of mass from its
    joint; `reach[j, k]`: of the centre of mass k from joint j; `spin`: largest moment of inertia.
    """

    rest: Floats
    slides: Floats
    mass: Floats
    com: Floats
    inertia: Floats
    joint_inertia: Floats
    joint_friction: Floats
    effort: Floats
    gravity: Floats
    offset: Floats
    aside: Floats
    reach: Floats
    spin: Floats


@dataclass(frozen=True, eq=False)
class Dynamics:
    """Masses and inertias of an arm as arrays; built by `dynamics`."""

    names: tuple[str, ...]
    rest: Floats
    slides: Floats
    mass: Floats
    com: Floats
    inertia: Floats
    joint_inertia: Floats
    joint_friction: Floats
    effort: Floats
    gravity: Floats

    def torques(self, motion: Motion) -> Floats:
        """(m, dof) positions, velocities and accelerations → (m, dof) torques in Nm (N)."""
        columns = [np.ascontiguousarray(np.atleast_2d(part), dtype=np.float64) for part in motion]
        out = np.empty_like(columns[0])
        bodies = (self.rest, self.slides, self.mass, self.com, self.inertia)
        newton_euler((columns[0], columns[1], columns[2]), bodies, self.gravity, out)
        out += columns[2] * self.joint_inertia + columns[1] * self.joint_friction
        return out

    @cached_property
    def _loads(self) -> Loads:
        offset, aside = (np.linalg.norm(at, axis=1) for at in (self.rest[:, 9:], self.com))
        from_first = np.cumsum(offset)
        reach = np.triu(from_first - from_first[:, None] + aside)
        known = (self.rest, self.slides, self.mass, self.com, self.inertia)
        limits = (self.joint_inertia, self.joint_friction, self.effort, self.gravity)
        spin = np.linalg.norm(self.inertia, ord=2, axis=(1, 2))
        columns = (*known, *limits, offset, aside, reach, spin)
        return Loads(*(np.array(each, dtype=np.float64, order="C") for each in columns))

    def may_overload(self, plan: Plan, times: Floats) -> bool:
        """Whether a joint may exceed its limit at one of these times of a plan, which increase, or
        at an end of a segment that is between them; if not, it is certain that none does."""
        if not len(plan.law):
            return True
        return bool(overload_possible(times, *plan.columns, self._loads))

    def shares(self, torques: Floats) -> Floats:
        """Torques as shares of the joints' limits; 0 where the model states no limit."""
        return np.asarray(np.abs(torques) / np.where(self.effort > 0.0, self.effort, np.inf))

    def unit(self, joint: int) -> str:
        """Unit of a joint's torque: Nm, or N of a joint that slides."""
        return "N" if self.slides[joint] else "Nm"

    def overloads(self, times: ArrayLike, torques: Floats) -> list[Overload]:
        """The joints that exceed their effort limit, each at its worst moment."""
        when = np.asarray(times, dtype=np.float64)
        share = self.shares(torques)
        return [
            self._overload(j, int(k), when, torques)
            for j, k in enumerate(share.argmax(axis=0))
            if share[k, j] > 1.0
        ]

    def _overload(self, joint: int, row: int, times: Floats, torques: Floats) -> Overload:
        torque, limit = float(torques[row, joint]), float(self.effort[joint])
        return Overload(self.names[joint], float(times[row]), torque, limit, self.unit(joint))


def dynamics(
    chain: Chain,
    *,
    payload: Payload | None = None,
    joint_inertia: ArrayLike = 0.0,
    joint_friction: ArrayLike = 0.0,
    gravity: ArrayLike = GRAVITY,
) -> Dynamics:
    """Builds the dynamics of an arm with its payload; gravity in the axes of its foot (see
    `gravity_at`)."""
    moving = chain.bodies[1:]
    mass = np.array([body.mass for body in moving])
    com = np.array([turn @ body.com for turn, body in zip(chain.align, moving, strict=True)])
    inertia = np.array(
        [turn @ body.inertia @ turn.T for turn, body in zip(chain.align, moving, strict=True)]
    )
    found = Dynamics(
        names=chain.names,
        rest=chain.rest,
        slides=chain.slides,
        mass=mass,
        com=com,
        inertia=inertia,
        joint_inertia=floats(joint_inertia, chain.dof),
        joint_friction=floats(joint_friction, chain.dof),
        effort=chain.effort,
        gravity=np.array(gravity, dtype=np.float64),
    )
    return found if payload is None else with_payload(found, chain, payload)


def with_payload(arm: Dynamics, chain: Chain, payload: Payload) -> Dynamics:
    """The same arm with one more load at its flange."""
    mass, com, inertia = arm.mass.copy(), arm.com.copy(), arm.inertia.copy()
    held = _at_the_last_axis(payload, chain.tip)
    mass[-1], com[-1], inertia[-1] = combined([(mass[-1], com[-1], inertia[-1]), held])
    return replace(arm, mass=mass, com=com, inertia=inertia)


def _at_the_last_axis(payload: Payload, tip: Floats) -> Mass:
    turn = tip[:3, :3]
    com = turn @ np.asarray(payload.com, dtype=np.float64) + tip[:3, 3]
    return payload.mass, com, turn @ np.asarray(payload.inertia, dtype=np.float64) @ turn.T


@compiled
def cross(a: Floats, b: Floats, out: Floats) -> None:
    """out = a × b."""
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@compiled
def newton_euler(  # kernel
    motion: tuple[Floats, Floats, Floats],
    bodies: tuple[Floats, Floats, Floats, Floats, Floats],
    gravity: Floats,
    out: Floats,
) -> None:
    """Outward pass: motion of every body in its frame. Inward pass: forces and torques."""
    Q, V, A = motion
    rest, slides, mass, com, inertia = bodies
    joints = Q.shape[1]
    turn = np.empty((joints, 3, 3))
    shift = np.empty((joints, 3))
    force = np.empty((joints, 3))
    torque = np.empty((joints, 3))
    x, y = np.empty(3), np.empty(3)
    for n in range(Q.shape[0]):
        # Turn w, its rate of change d and the acceleration a of the body before, in registers.
        w0 = w1 = w2 = d0 = d1 = d2 = 0.0
        a0, a1, a2 = -gravity[0], -gravity[1], -gravity[2]
        for j in range(joints):
            q, qd, qdd = Q[n, j], V[n, j], A[n, j]
            R, r, c = turn[j], rest[j], com[j]
            cos, sin = (1.0, 0.0) if slides[j] else (math.cos(q), math.sin(q))
            for i in range(3):
                R[i, 0] = r[3 * i] * cos + r[3 * i + 1] * sin
                R[i, 1] = r[3 * i + 1] * cos - r[3 * i] * sin
                R[i, 2] = r[3 * i + 2]
                shift[j, i] = r[9 + i] + (r[3 * i + 2] * q if slides[j] else 0.0)
            s0, s1, s2 = shift[j, 0], shift[j, 1], shift[j, 2]
            y0, y1, y2 = w1 * s2 - w2 * s1, w2 * s0 - w0 * s2, w0 * s1 - w1 * s0
            a0 = a0 + (d1 * s2 - d2 * s1) + (w1 * y2 - w2 * y1)
            a1 = a1 + (d2 * s0 - d0 * s2) + (w2 * y0 - w0 * y2)
            a2 = a2 + (d0 * s1 - d1 * s0) + (w0 * y1 - w1 * y0)
            w0, w1, w2 = (
                R[0, 0] * w0 + R[1, 0] * w1 + R[2, 0] * w2,
                R[0, 1] * w0 + R[1, 1] * w1 + R[2, 1] * w2,
                R[0, 2] * w0 + R[1, 2] * w1 + R[2, 2] * w2,
            )
            d0, d1, d2 = (
                R[0, 0] * d0 + R[1, 0] * d1 + R[2, 0] * d2,
                R[0, 1] * d0 + R[1, 1] * d1 + R[2, 1] * d2,
                R[0, 2] * d0 + R[1, 2] * d1 + R[2, 2] * d2,
            )
            a0, a1, a2 = (
                R[0, 0] * a0 + R[1, 0] * a1 + R[2, 0] * a2,
                R[0, 1] * a0 + R[1, 1] * a1 + R[2, 1] * a2,
                R[0, 2] * a0 + R[1, 2] * a1 + R[2, 2] * a2,
            )
            if slides[j]:
                a0 += 2.0 * w1 * qd
                a1 -= 2.0 * w0 * qd
                a2 += qdd
            else:
                d0 += w1 * qd
                d1 -= w0 * qd
                d2 += qdd
                w2 += qd
            c0, c1, c2 = c[0], c[1], c[2]
            y0, y1, y2 = w1 * c2 - w2 * c1, w2 * c0 - w0 * c2, w0 * c1 - w1 * c0
            f0 = mass[j] * (a0 + (d1 * c2 - d2 * c1) + (w1 * y2 - w2 * y1))
            f1 = mass[j] * (a1 + (d2 * c0 - d0 * c2) + (w2 * y0 - w0 * y2))
            f2 = mass[j] * (a2 + (d0 * c1 - d1 * c0) + (w0 * y1 - w1 * y0))
            force[j, 0], force[j, 1], force[j, 2] = f0, f1, f2
            T = inertia[j]
            y0 = T[0, 0] * w0 + T[0, 1] * w1 + T[0, 2] * w2
            y1 = T[1, 0] * w0 + T[1, 1] * w1 + T[1, 2] * w2
            y2 = T[2, 0] * w0 + T[2, 1] * w1 + T[2, 2] * w2
            torque[j, 0] = (
                (T[0, 0] * d0 + T[0, 1] * d1 + T[0, 2] * d2)
                + (w1 * y2 - w2 * y1)
                + (c1 * f2 - c2 * f1)
            )
            torque[j, 1] = (
                (T[1, 0] * d0 + T[1, 1] * d1 + T[1, 2] * d2)
                + (w2 * y0 - w0 * y2)
                + (c2 * f0 - c0 * f2)
            )
            torque[j, 2] = (
                (T[2, 0] * d0 + T[2, 1] * d1 + T[2, 2] * d2)
                + (w0 * y1 - w1 * y0)
                + (c0 * f1 - c1 * f0)
            )
        for j in range(joints - 1, -1, -1):
            out[n, j] = force[j, 2] if slides[j] else torque[j, 2]
            if j == 0:
                break
            R = turn[j]
            for i in range(3):
                x[i] = R[i, 0] * force[j, 0] + R[i, 1] * force[j, 1] + R[i, 2] * force[j, 2]
            cross(shift[j], x, y)
            for i in range(3):
                y[i] += R[i, 0] * torque[j, 0] + R[i, 1] * torque[j, 1] + R[i, 2] * torque[j, 2]
                force[j - 1, i] += x[i]
                torque[j - 1, i] += y[i]


# ── a first look at the torques of a plan ────────────────────────────────────────────────────────
#
# Most motion is far from the limits of its joints. In a configuration that differs by dq from one
# with known torques of gravity, at speeds v and accelerations a of the joints, the torque of a
# joint is bounded by: those torques; what gravity can change, which is m·g·reach of every body
# times the angles by which its joints differ; and the forces of the motion, by the triangle
# inequality from body to body (speeds and accelerations of turning add up along the arm). A segment
# of a plan that keeps this bound needs no samples; of any other the torques are computed.


LOOKS = 64
"""Samples that are computed at once."""
CERTAIN = 1.0 - 1e-9
"""Share of the limits up to which rounding cannot hide an overload."""


@compiled
def motion_torques(turned: Floats, speed: Floats, rise: Floats, arm: Loads, out: Floats) -> None:
    """Bounds of the torques of speeds and accelerations, and of the change of those of gravity when
    the joints turn by ``turned``."""
    g = arm.gravity
    weight = math.sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2])
    moved = spun = gained = pushed = 0.0
    for k in range(len(out)):
        out[k] = arm.joint_inertia[k] * rise[k] + arm.joint_friction[k] * speed[k]
        pushed += (gained + spun * spun) * arm.offset[k]
        gained += rise[k] + spun * speed[k]
        spun += speed[k]
        moved += turned[k]
        whirl = gained + spun * spun
        force = arm.mass[k] * (pushed + whirl * arm.aside[k] + weight * moved)
        for j in range(k + 1):
            out[j] += force * arm.reach[j, k] + arm.spin[k] * whirl


@compiled
def segment_bounds(
    law: Columns, k: int, shape: Floats, q: Floats, turned: Floats, speed: Floats, rise: Floats
) -> None:
    """On a segment of a plan: the joints in the middle of its way, and bounds of their distance
    from there, of their speeds and accelerations. For pieces of degree 1 or 3."""
    begins, piece, s0, v0, a0, j0 = law
    lasts, row = begins[k + 1] - begins[k], shape[piece[k]]
    s, v, a, j = s0[k], v0[k], a0[k], j0[k]
    end = s + lasts * (v + lasts * (0.5 * a + lasts * j / 6.0))
    low, high = min(s, end), max(s, end)
    fast, slow = max(v, v + lasts * (a + 0.5 * lasts * j)), max(abs(a), abs(a + lasts * j))
    if j != 0.0 and 0.0 < -a / j < lasts:
        fast = max(fast, v - 0.5 * a * a / j)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    for i in range(shape.shape[2]):
        b = row[1, i]
        if len(row) == 2:
            q[i] = row[0, i] + middle * b
            slope, bend = abs(b), 0.0
        else:
            c, d = row[2, i], row[3, i]
            q[i] = row[0, i] + middle * (b + middle * (c + middle * d))
            slope = max(
                abs(b + low * (2.0 * c + 3.0 * low * d)), abs(b + high * (2.0 * c + 3.0 * high * d))
            )
            turn = -c / (3.0 * d)
            if low < turn < high:
                slope = max(slope, abs(b + turn * (2.0 * c + 3.0 * turn * d)))
            bend = max(abs(2.0 * c + 6.0 * low * d), abs(2.0 * c + 6.0 * high * d))
        turned[i] = slope * half
        speed[i] = slope * fast
        rise[i] = slope * slow + bend * fast * fast


@compiled
def overload_possible(  # kernel
    times: Floats, law: Columns, shape: Floats, target: Floats, arm: Loads
) -> bool:
    """Whether a joint may exceed its limit: see `Dynamics.may_overload`."""
    begins = law[0]
    axes, last, degree = shape.shape[2], len(begins) - 2, shape.shape[1] - 1
    bounded = (degree == 1 or degree == 3) and not arm.slides.any()
    bodies = (arm.rest, arm.slides, arm.mass, arm.com, arm.inertia)
    q, known, still, held = np.empty((4, 1, axes))
    still[:] = 0.0
    turned, speed, rise, more = np.empty((4, axes))
    when = np.empty(LOOKS)
    motion = (np.empty((LOOKS, axes)), np.empty((LOOKS, axes)), np.empty((LOOKS, axes)))
    torques = np.empty((LOOKS, axes))
    k, n = segment_at(begins, times[0], 0), 0
    near = False
    while k <= last and begins[k] <= times[-1]:
        ends = begins[k + 1]
        sure = False
        if bounded:
            segment_bounds(law, k, shape, q[0], turned, speed, rise)
            for again in range(2):
                if again or not near:
                    known[:] = q
                    newton_euler((q, still, still), bodies, arm.gravity, held)
                    near = True
                for i in range(axes):
                    more[i] = turned[i] + abs(q[0, i] - known[0, i])
                motion_torques(more, speed, rise, arm, torques[0])
                sure = True
                for i in range(axes):
                    most = (abs(held[0, i]) + torques[0, i]) if arm.effort[i] > 0.0 else 0.0
                    sure = sure and most <= CERTAIN * arm.effort[i]
                if sure:
                    break
        while n < len(times) and times[n] < begins[k]:
            n += 1
        if not sure:
            when[0], when[1], count = begins[k], np.nextafter(ends, 0.0), 2
            while True:
                while n < len(times) and times[n] <= ends and count < LOOKS:
                    when[count] = times[n]
                    count, n = count + 1, n + 1
                motions_at(when[:count], law, shape, target, motion)
                newton_euler(
                    (motion[0][:count], motion[1][:count], motion[2][:count]),
                    bodies,
                    arm.gravity,
                    torques[:count],
                )
                for row in range(count):
                    for i in range(axes):
                        moved = motion[2][row, i] * arm.joint_inertia[i]
                        total = torques[row, i] + moved + motion[1][row, i] * arm.joint_friction[i]
                        if arm.effort[i] > 0.0 and not abs(total) <= CERTAIN * arm.effort[i]:
                            return True
                if count < LOOKS:
                    break
                count = 0
        k += 1
    return False
