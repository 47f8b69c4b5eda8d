"""Geometry and statics of grips: boxes, cylinders, rigid motions, loads."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.devices.gripper.gripper_bench import DOWN, Bench, box

from understudy.devices.gripper.hardware import (
    cup_carries,
    fingers_carry,
    load_of,
    seals,
    span_along,
)
from understudy.ports.workpieces import WorkpieceReading
from understudy.space.pose import Pose, pose_of
from understudy.space.transform import matrix, pose

ANGLE = st.floats(-180, 180)
LENGTH = st.floats(-300, 300)
POSES = st.tuples(LENGTH, LENGTH, LENGTH, ANGLE, st.floats(-80, 80), ANGLE).map(pose_of)
CUP: dict[str, Any] = {"radius": 0.015, "reach": 0.003, "tilt": math.radians(5)}


def can(at: tuple[float, ...] = (400, 0, 80, 0, 0, 0), *, diameter: float = 40) -> WorkpieceReading:
    return replace(box(size_mm=(diameter, diameter, 40), at=at), type="cylinder")


def moved(by: Pose, what: Pose) -> Pose:
    return pose(matrix(by) @ matrix(what))


@given(POSES, POSES)
def test_a_common_motion_of_tool_and_part_changes_nothing(by: Pose, at: Pose) -> None:
    for part in (box(), can()):
        here = replace(part, pose=at)
        there = replace(part, pose=moved(by, at))
        near, far = span_along(DOWN, here, "y"), span_along(moved(by, DOWN), there, "y")
        assert near == pytest.approx(far, abs=1e-9)


@given(ANGLE)
def test_a_standing_cylinder_has_its_diameter_in_every_direction(turn: float) -> None:
    span = span_along(DOWN, can((400, 0, 100, 0, 0, turn)), "y")
    assert span.width == pytest.approx(0.040)


def test_a_lying_cylinder_is_as_wide_as_it_is_long_along_its_axis() -> None:
    lying = replace(can((400, 0, 100, 90, 0, 0)), size=(0.04, 0.04, 0.07))
    assert span_along(DOWN, lying, "y").width == pytest.approx(0.07)
    assert span_along(DOWN, lying, "x").width == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("part", "sealed"),
    [
        (can(), True),
        (can((404, 0, 80, 0, 0, 20)), True),
        (can((404, 4, 80, 0, 0, 0)), False),
        (can((400, 0, 80, 180, 0, 0)), True),
        (can((400, 0, 80, 90, 0, 0)), False),
        (can(diameter=29), False),
    ],
    ids=["centred", "beside", "rim over the edge", "upside down", "round side up", "too small"],
)
def test_a_cup_seals_on_the_flat_face_of_a_cylinder(part: WorkpieceReading, sealed: bool) -> None:
    assert seals(DOWN, part, **CUP) == sealed


def test_a_cylinder_is_gripped_by_fingers_and_cup() -> None:
    bench = Bench(can((400, 0, 100, 0, 0, 33)))
    assert bench.grip() == ""
    assert bench.status.opening == pytest.approx(0.040)
    assert Bench(can(), type="PNEUMATIC_VACUUM").grip() == ""


@given(st.floats(0.01, 10), st.floats(0, 30), POSES)
def test_more_force_never_carries_less(mass: float, acceleration: float, at: Pose) -> None:
    load = load_of(mass, np.array([acceleration, 0.0, 0.0]))
    axes = matrix(at)[:3, :3]
    forces = np.linspace(0.0, 2000.0, 9)
    held = [fingers_carry(load, axes[:, 1], float(force), 0.5) for force in forces]
    sucked = [cup_carries(load, axes[:, 2], float(force), 0.5) for force in forces]
    assert held == sorted(held)
    assert sucked == sorted(sucked)
    assert held[-1]
    assert not held[0]
