"""Unknown objects that the depth image shows: found, and moves through them refused."""

from typing import Any

import numpy as np
import pytest
from tests.jobs.pick_place.cell_bench import CUBES, PLACE, TABLE, CellBench, cube

from understudy.errors import ConfigError
from understudy.jobs.pick_place.obstacles import blocks, unexplained
from understudy.ports.job_arm import Block, SweptMove, Touch
from understudy.ports.operation import Target
from understudy.robots.arm.operator import job_arm
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import CollisionObject, Hull, ObjectType, TriangleMesh, near
from understudy.space.pose import ORIGIN, Pose
from understudy.space.transform import Array, matrix, translation
from understudy.units import MM
from understudy.vision.in_process import answer_in_process

CAMERA = {
    "mount": "eye_in_hand", "pose_mm_deg": [60, 0, 20, 0, 0, 0], "depth": True,
    "width_px": 480, "height_px": 360, "fx_px": 330, "fy_px": 330, "cx_px": 239.5, "cy_px": 179.5,
}  # fmt: skip
SEES = {
    "source": "process",
    "mount": "eye_in_hand",
    "camera_mm_deg": [60, 0, 20, 0, 0, 0],
    **{key: value for key, value in CAMERA.items() if key.endswith("_px")},
    "detectors": [
        {
            "kind": "shapes",
            "plane_z_mm": 50,
            "classes": [{"name": "cube", "color": "#c82820", "size_mm": [40, 40, 40]}],
        }
    ],
}
CHECKED = {"obstacle_check": True, "max_approach_speed_mm_s": 500}


def bench(**safety: object) -> CellBench:
    made = CellBench(
        cube("a", 450.0, 120.0, 20.0) | {"color": "#c82820"},
        robot={"camera": CAMERA, "vision": SEES, "safety": CHECKED | safety},
        pickplace={"max_scan_retries": 2},
    )
    answer_in_process(made.cell, made.config)
    return made


def put(made: CellBench, at: tuple[float, float, float], size: tuple[float, float, float]) -> None:
    """An operator's object that is not in the cell file; mm."""
    environment: Any = made.cell.components["environment"]
    place = translation(*(value * MM for value in at))
    a, b, c = (value * MM for value in size)
    thing = CollisionObject(
        type=ObjectType.BOX, name="crate", transform=place, dimensions=(a, b, c)
    )
    assert environment.add([thing], made.now) is None


def test_an_unknown_object_in_the_way_is_refused_with_its_place() -> None:
    made = bench()
    put(made, (525.0, -50.0, 150.0), (60.0, 60.0, 200.0))
    made.job.run_single_cycle(made.now)
    made.finish()
    said = made.status.last_error
    assert "obstacle: unknown object 1 at X " in said
    assert "is in the way of" in said
    place = [float(said.split(f"{axis} ")[1].split()[0]) for axis in "XYZ"]
    assert np.abs(np.array(place) - (525.0, -50.0, 150.0)).max() < 130.0
    assert np.abs(np.array(place[:2]) - (525.0, -50.0)).max() < 60.0
    assert made.cycles == [(1, False)]
    assert made.contacts() == 0, "the arm has not moved into it"
    assert made.place_of("a")[:2] == [450.0, 120.0]


def test_the_arm_would_have_touched_it() -> None:
    made = bench(obstacle_check=False)
    put(made, (525.0, -50.0, 150.0), (60.0, 60.0, 200.0))
    made.job.run_single_cycle(made.now)
    made.finish()
    assert made.contacts() > 0


def test_without_it_and_with_one_beside_the_way_the_cycle_runs() -> None:
    made = bench()
    put(made, (330.0, -150.0, 75.0), (50.0, 50.0, 50.0))
    made.job.run_single_cycle(made.now)
    made.finish()
    assert made.status.last_error == ""
    assert made.cycles == [(1, True)]
    assert made.contacts() == 0
    assert np.abs(np.array(made.place_of("a")[:2]) - (PLACE["x"], PLACE["y"])).max() < 0.5


def test_an_object_of_the_cell_file_is_known() -> None:
    """The same crate, in the file: the check does not see it, the watch does."""
    crate = {"name": "crate", "type": "box", "position_mm": [500, -100, 150],
             "dimensions_mm": [60, 60, 200]}  # fmt: skip
    points = grid((0.47, -0.13, 0.25), (0.53, -0.07, 0.25))
    known = [thing_of(crate), *map(thing_of, TABLE)]
    assert not unexplained(points, known, (), 0.01).any()
    assert unexplained(points, known[1:], (), 0.01).all()


def test_the_check_needs_a_process_and_the_body_of_the_robot() -> None:
    with pytest.raises(ConfigError, match=r"obstacle_check.*needs the depth image"):
        CellBench(
            *CUBES,
            robot={"safety": {"obstacle_check": True}},
            pickplace={"source": "fixed", "pick_position": PLACE},
        )
    with pytest.raises(ConfigError, match=r"obstacle_check.*needs the body of the robot"):
        CellBench(
            *CUBES,
            robot={
                "camera": CAMERA,
                "vision": SEES,
                "safety": {"obstacle_check": True},
                "collision": {"enable": False},
            },
        )


def test_ground_truth_vision_says_that_it_does_not_look(caplog: pytest.LogCaptureFixture) -> None:
    """Offline checks and `--vision ground_truth` run the same cell without pictures."""
    made = CellBench(*CUBES, robot={"safety": {"obstacle_check": True}})
    assert "unknown objects are not looked for" in caplog.text
    made.job.run_single_cycle(made.now)
    made.finish()
    assert made.cycles == [(1, True)]


# ── parts of the check ──


def thing_of(keys: dict[str, Any]) -> CollisionObject:
    x, y, z = (value * MM for value in keys["position_mm"])
    a, b, c = (value * MM for value in keys["dimensions_mm"])
    return CollisionObject(
        type=ObjectType.BOX, name=keys["name"], transform=translation(x, y, z),
        dimensions=(a, b, c),
    )  # fmt: skip


def grid(low: tuple[float, ...], high: tuple[float, ...], step: float = 0.008) -> Array:
    axes = [np.arange(a, b + 1e-9, step) for a, b in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 3)


def test_points_near_to_shapes() -> None:
    """Against distances that are computed another way: by many points on the surface."""
    chance = np.random.default_rng(3)
    points = chance.uniform(-0.2, 0.2, (400, 3))
    place = matrix(Pose(0.02, -0.03, 0.01, 0.4, -0.7, 1.1))
    here = (points - place[:3, 3]) @ place[:3, :3]
    box = Box((0.1, 0.06, 0.2))
    clipped = np.clip(here, -0.5 * np.array(box.size), 0.5 * np.array(box.size))
    np.testing.assert_array_equal(
        near(box, place, points, 0.02), np.linalg.norm(here - clipped, axis=1) <= 0.02
    )
    ball, rod = Sphere(0.07), Capsule(0.03, 0.1)
    np.testing.assert_array_equal(
        near(ball, place, points, 0.02), np.linalg.norm(here, axis=1) <= 0.09
    )
    axis = np.linspace((0, 0, -0.05), (0, 0, 0.05), 2001)
    off = np.linalg.norm(here[:, None] - axis, axis=2).min(axis=1)
    np.testing.assert_array_equal(near(rod, place, points, 0.02), off <= 0.05)
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    can, hull = Cylinder(0.05, 0.1), Hull(0.05 * signs)
    assert near(can, place, points, 0.02).sum() > 5
    assert near(
        can, np.eye(4), np.array([[0.069, 0, 0], [0.071, 0, 0], [0, 0, 0.069]]), 0.02
    ).tolist() == [True, False, True]
    np.testing.assert_array_equal(
        near(hull, place, points, 0.02), near(Box((0.1, 0.1, 0.1)), place, points, 0.02)
    )


def test_of_a_mesh_only_the_surface_is_known() -> None:
    """An object in a bin is not explained by the bin."""
    corners = np.array([[-0.2, -0.2, 0], [0.2, -0.2, 0], [0.2, 0.2, 0], [-0.2, 0.2, 0]])
    floor = TriangleMesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))
    on, above = grid((-0.19, -0.19, 0.004), (0.19, 0.19, 0.004), 0.03), np.array([[0.0, 0.0, 0.05]])
    assert near(floor, np.eye(4), on, 0.01).all()
    assert not near(floor, np.eye(4), above, 0.01).any()


def test_unknown_points_become_boxes_that_reach_down() -> None:
    table = grid((0.26, -0.3, 0.05), (0.7, 0.3, 0.05), 0.02)
    crate = grid((0.47, -0.13, 0.25), (0.53, -0.07, 0.25))
    noise = np.array([[0.3, 0.2, 0.3]])
    points = np.vstack([table, crate, noise])
    unknown = unexplained(points, [thing_of(each) for each in TABLE], (), 0.01)
    (found,) = blocks(points, unknown, 0.01)
    np.testing.assert_allclose(found.at[:3], (0.498, -0.102, 0.155), atol=6e-3)
    np.testing.assert_allclose(found.size, (0.076, 0.076, 0.21), atol=6e-3)
    part = Block("cube", Pose(0.5, -0.1, 0.23, 0, 0, 0), (0.06, 0.06, 0.04))
    assert not unexplained(crate, (), (part,), 0.01).any(), "a part that was detected"


def test_the_arm_and_its_tool_explain_themselves_and_sweep_moves() -> None:
    made = CellBench()
    arm = job_arm(made.robot)
    assert arm.body is not None
    flange = matrix(arm.flange(0))
    palm = [tuple((flange @ np.array([0.0, 0.04, 0.02, 1.0]))[:3].tolist())]
    assert arm.body.covers([*palm, (2.0, 0.0, 1.0)], 0.005, 0) == [True, False]
    made.job.run_single_cycle(0)
    made.run_to("SCANNING")
    motion: Any = made.cell.components["g60.motion"]
    start, now = motion.tool(made.now), made.now
    aside = Target(None, start._replace(y=start.y + 0.2), True, 0.1)
    wall = Block("wall", ORIGIN._replace(x=start.x, y=start.y + 0.15, z=start.z), (0.1, 0.02, 0.1))
    touch = arm.body.first_touch([SweptMove(aside)], [wall], now)
    assert isinstance(touch, Touch)
    assert (touch.move, touch.object) == (0, "wall")
    assert touch.body.startswith("gripper.")
    assert touch.point[1] == pytest.approx(start.y + 0.14, abs=2e-3)
    held = Block("bar", ORIGIN._replace(z=0.1), (0.02, 0.02, 0.2))
    low = Block("low", ORIGIN._replace(x=start.x, y=start.y + 0.2, z=start.z - 0.15), (0.05,) * 3)
    assert arm.body.first_touch([SweptMove(aside)], [low], now) is None
    carried = arm.body.first_touch([SweptMove(aside, held)], [low], now)
    assert isinstance(carried, Touch)
    assert carried.body == "held part"
    assert arm.body.first_touch([SweptMove(aside)], [], now) is None
