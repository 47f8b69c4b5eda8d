"""Joint torques of a motion by the recursive Newton-Euler algorithm, for many samples at once.

SI units. Frames are those of space.kinematics.chain: z of each joint is its axis. The payload at
the flange is part of the last body. Joint inertia (motor and gear, at the joint) and viscous
friction are added to the torques of the bodies.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from understudy.motion.path import Floats, floats
from understudy.motion.plan import Motion
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


@dataclass(frozen=True, slots=True, eq=False)
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
    w, dw, dv = np.empty(3), np.empty(3), np.empty(3)
    w0, dw0, dv0 = np.empty(3), np.empty(3), np.empty(3)
    x, y = np.empty(3), np.empty(3)
    for n in range(Q.shape[0]):
        for i in range(3):
            w0[i] = dw0[i] = 0.0
            dv0[i] = -gravity[i]
        for j in range(joints):
            q, qd, qdd = Q[n, j], V[n, j], A[n, j]
            R, r, c = turn[j], rest[j], com[j]
            cos, sin = (1.0, 0.0) if slides[j] else (math.cos(q), math.sin(q))
            for i in range(3):
                R[i, 0] = r[3 * i] * cos + r[3 * i + 1] * sin
                R[i, 1] = r[3 * i + 1] * cos - r[3 * i] * sin
                R[i, 2] = r[3 * i + 2]
                shift[j, i] = r[9 + i] + (r[3 * i + 2] * q if slides[j] else 0.0)
            cross(dw0, shift[j], x)
            cross(w0, shift[j], y)
            for i in range(3):
                dv0[i] += x[i]
            cross(w0, y, x)
            for i in range(3):
                dv0[i] += x[i]
            for i in range(3):
                w[i] = R[0, i] * w0[0] + R[1, i] * w0[1] + R[2, i] * w0[2]
                dw[i] = R[0, i] * dw0[0] + R[1, i] * dw0[1] + R[2, i] * dw0[2]
                dv[i] = R[0, i] * dv0[0] + R[1, i] * dv0[1] + R[2, i] * dv0[2]
            if slides[j]:
                dv[0] += 2.0 * w[1] * qd
                dv[1] -= 2.0 * w[0] * qd
                dv[2] += qdd
            else:
                dw[0] += w[1] * qd
                dw[1] -= w[0] * qd
                dw[2] += qdd
                w[2] += qd
            cross(dw, c, x)
            for i in range(3):
                force[j, i] = dv[i] + x[i]
            cross(w, c, y)
            cross(w, y, x)
            for i in range(3):
                force[j, i] = mass[j] * (force[j, i] + x[i])
            T = inertia[j]
            for i in range(3):
                y[i] = T[i, 0] * w[0] + T[i, 1] * w[1] + T[i, 2] * w[2]
            cross(w, y, x)
            cross(c, force[j], y)
            for i in range(3):
                torque[j, i] = T[i, 0] * dw[0] + T[i, 1] * dw[1] + T[i, 2] * dw[2] + x[i] + y[i]
                w0[i], dw0[i], dv0[i] = w[i], dw[i], dv[i]
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
