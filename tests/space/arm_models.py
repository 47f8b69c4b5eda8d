"""Example arms of other kinds: URDF texts generated from the positions of the axes."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from understudy.space.kinematics.chain import Chain, chain
from understudy.space.model.urdf import read
from understudy.space.transform import Array, inverse, pose, rotation, rotation_about


def manipulability(chain: Chain, q: ArrayLike, tool: Array | None = None) -> float:
    """Yoshikawa's measure √det(J·Jᵀ): 0 in a singular pose; cubic metres for six axes."""
    J = chain.jacobian(q, tool)
    gram = J @ J.T if chain.dof >= 6 else J.T @ J
    return math.sqrt(max(float(np.linalg.det(gram)), 0.0))


Axis = tuple[ArrayLike, ArrayLike]
"""A point and a direction."""
Limits = tuple[float, float]
WIDE = (-3.1, 3.1)
ROBOTS = Path(__file__).parents[2] / "src" / "understudy" / "catalog" / "robots"


def catalog_text(name: str) -> str:
    return (ROBOTS / f"{name}.urdf").read_text()


def frame(turn: Array, place: ArrayLike) -> Array:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = turn, np.asarray(place)
    return out


def numbers(values: Iterable[float]) -> str:
    return " ".join(repr(float(v)) for v in values)


def urdf_text(
    axes: Sequence[Axis],
    tip: Array,
    *,
    kinds: Sequence[str] | None = None,
    limits: Limits = WIDE,
    turns: Sequence[Array] | None = None,
) -> str:
    """A robot whose joints at zero lie on the lines (point, direction); ``tip`` is a 4×4 place.

    ``turns`` are the orientations of the links' own frames: they must not matter.
    """
    kinds = kinds or ["revolute"] * len(axes)
    turns = turns or [np.eye(3)] * len(axes)
    text = ['<robot name="own"><link name="l0"/>']
    before = np.eye(4)
    for i, ((point, direction), kind, turn) in enumerate(zip(axes, kinds, turns, strict=True)):
        here = frame(turn, point)
        at = pose(inverse(before) @ here)
        text.append(
            f'<link name="l{i + 1}"/><joint name="j{i + 1}" type="{kind}">'
            f'<parent link="l{i}"/><child link="l{i + 1}"/>'
            f'<origin xyz="{numbers(at[:3])}" rpy="{numbers(at[3:])}"/>'
            f'<axis xyz="{numbers(turn.T @ np.asarray(direction, float))}"/>'
            f'<limit lower="{limits[0]}" upper="{limits[1]}" velocity="2" effort="0"/></joint>'
        )
        before = here
    at = pose(inverse(before) @ tip)
    text.append(
        f'<link name="tip"/><joint name="end" type="fixed"><parent link="l{len(axes)}"/>'
        f'<child link="tip"/><origin xyz="{numbers(at[:3])}" rpy="{numbers(at[3:])}"/></joint>'
        "</robot>"
    )
    return "\n".join(text)


def built(
    axes: Sequence[Axis],
    tip: Array,
    *,
    kinds: Sequence[str] | None = None,
    limits: Limits = WIDE,
    turns: Sequence[Array] | None = None,
) -> Chain:
    return chain(read(urdf_text(axes, tip, kinds=kinds, limits=limits, turns=turns)))


def puma(*, lateral: float = 0.15, limits: Limits = WIDE) -> Chain:
    """Spherical wrist, the arm beside the column, axis 3 turning against axis 2."""
    axes: list[Axis] = [
        ((0, 0, 0), (0, 0, 1)),
        ((0, 0, 0.6), (0, 1, 0)),
        ((0, 0.2, 1.03), (0, -1, 0)),
        ((0.02, lateral, 1.2), (0, 0, 1)),
        ((0.02, lateral, 1.46), (0, -1, 0)),
        ((0.02, lateral, 1.46), (0, 0, -1)),
    ]
    return built(axes, frame(rotation(0.3, 0.2, 0.1), (0.02, lateral, 1.52)), limits=limits)


def three_parallel() -> Chain:
    """As the UR arms: axes 2, 3, 4 parallel, no spherical wrist."""
    axes: list[Axis] = [
        ((0, 0, 0.089), (0, 0, 1)),
        ((0, 0.13, 0.089), (0, 1, 0)),
        ((0.425, 0.02, 0.089), (0, 1, 0)),
        ((0.817, 0.02, 0.089), (0, 1, 0)),
        ((0.817, 0.11, 0.089), (0, 0, -1)),
        ((0.817, 0.11, -0.006), (0, 1, 0)),
    ]
    return built(axes, frame(np.eye(3), (0.817, 0.192, -0.006)))


def seven_axes() -> Chain:
    heights = (0.3, 0.3, 0.7, 0.7, 1.1, 1.1, 1.1)
    axes: list[Axis] = [
        ((0, 0, h), (0, 0, 1) if i % 2 == 0 else (0, 1, 0)) for i, h in enumerate(heights)
    ]
    return built(axes, frame(np.eye(3), (0, 0, 1.2)), limits=(-2.8, 2.8))


def gantry() -> Chain:
    """Three slides and a wrist without a common point."""
    axes: list[Axis] = [
        ((0, 0, 0), (1, 0, 0)),
        ((0, 0, 0), (0, 1, 0)),
        ((0, 0, 0), (0, 0, 1)),
        ((0, 0, 0), (0, 0, 1)),
        ((0.1, 0, 0), (0, 1, 0)),
        ((0.1, 0.1, 0), (1, 0, 0)),
    ]
    kinds = ["prismatic"] * 3 + ["revolute"] * 3
    return built(axes, frame(np.eye(3), (0.2, 0.1, 0)), kinds=kinds, limits=(-2.0, 2.0))


def spherical_wrist_arm(seed: int) -> Chain:
    """A random anthropomorphic arm with random frames."""
    rng = np.random.default_rng(seed)

    def any_turn() -> Array:
        axis = rng.normal(size=3)
        return rotation_about(axis / np.linalg.norm(axis), rng.uniform(-3, 3))

    side, sign = rng.uniform(-0.1, 0.1), rng.choice([-1.0, 1.0], size=6)
    elbow = np.array([rng.uniform(-0.2, 0.5), rng.uniform(-0.2, 0.2), rng.uniform(0.5, 1.0)])
    wrist = np.array([rng.uniform(0.2, 0.9), side, rng.uniform(0.3, 1.4)])
    pitch = rng.uniform(-3, 3)
    u4 = np.array([np.sin(pitch), 0.0, np.cos(pitch)])
    u5 = rotation_about(u4, rng.uniform(-3, 3)) @ (0.0, 1.0, 0.0)
    u6 = rotation_about(u5, rng.uniform(-3, 3)) @ u4
    lines: list[Axis] = [
        ((0, 0, 0.1), (0, 0, 1)), ((rng.uniform(-0.1, 0.2), 0.05, 0.4), (0, 1, 0)),
        (elbow, (0, 1, 0)), (wrist - 0.2 * u4, u4), (wrist, u5), (wrist + 0.1 * u6, u6),
    ]  # fmt: skip
    world = frame(any_turn(), rng.normal(size=3))
    axes: list[Axis] = [
        (
            world[:3, :3] @ np.asarray(point) + world[:3, 3],
            s * (world[:3, :3] @ np.asarray(direction)),
        )
        for (point, direction), s in zip(lines, sign, strict=True)
    ]
    tip = world @ frame(any_turn(), wrist + 0.15 * u6)
    return built(axes, tip, turns=[any_turn() for _ in axes])
