"""Objects from configuration, meshes from bytes, fixtures from URDF."""

import msgspec
import numpy as np
import pytest
import trimesh

from understudy.errors import ConfigError
from understudy.space.collision.detector import CollisionDetector
from understudy.space.model.environment import CollisionConfig, EnvironmentConfig, fixture
from understudy.space.model.robot import Box, Cylinder
from understudy.space.model.shapes import (
    CollisionObject,
    Hull,
    ObjectType,
    TriangleMesh,
    mesh_from_bytes,
)
from understudy.space.transform import translation

CELL = {
    "objects": [
        {"name": "table", "type": "box", "position_mm": [800, 0, -25],
         "dimensions_mm": [1000, 600, 50]},
        {"name": "post", "type": "cylinder", "radius_mm": 40, "height_mm": 900,
         "rotation_deg": [0, 90, 0]},
        {"name": "part", "type": "mesh", "mesh": "part.stl", "scale_mm": 25.4},
    ]
}  # fmt: skip
TABLE = """<robot name="jig">
  <link name="plate"><collision><geometry><box size="1 1 0.02"/></geometry></collision></link>
  <link name="clamp"><collision><origin xyz="0 0 0.1"/>
    <geometry><cylinder radius="0.02" length="0.2"/></geometry></collision>
    <collision><geometry><mesh filename="jaw.stl" scale="0.001 0.001 0.001"/></geometry></collision>
  </link>
  <joint name="lift" type="prismatic"><parent link="plate"/><child link="clamp"/>
    <origin xyz="0.3 0 0.01"/><axis xyz="0 0 1"/><limit lower="0" upper="1" velocity="1"/></joint>
</robot>"""


def test_a_cell_file_in_millimetres_and_degrees() -> None:
    config = msgspec.convert(CELL, EnvironmentConfig)
    files = {"part.stl": trimesh.creation.box((1, 1, 1)).export(file_type="stl")}
    table, post, part = config.build(files.__getitem__).objects
    assert table.shape == Box((1.0, 0.6, 0.05))
    assert table.place[:3, 3] == pytest.approx([0.8, 0.0, -0.025])
    assert post.shape == Cylinder(0.04, 0.9)
    assert post.place[:3, 2] == pytest.approx([1, 0, 0])
    assert isinstance(part.shape, TriangleMesh)
    low, high = part.shape.bounds()
    assert high - low == pytest.approx(np.full(3, 0.0254))


def no_files(name: str) -> bytes:
    raise ConfigError("no file", value=name)


def test_fixtures_and_zones_are_added_to_the_objects() -> None:
    config = msgspec.convert(
        {
            "fixtures": [{"name": "jig", "urdf": "jig.urdf", "position_mm": [500, 0, 0]}],
            "zones": [{"name": "fence", "type": "box", "dimensions_mm": [10, 10, 10]}],
        },
        EnvironmentConfig,
    )
    jaw = trimesh.creation.box((10, 10, 10)).export(file_type="stl")
    files = {"jig.urdf": TABLE.encode(), "jaw.stl": jaw}
    found = config.build(files.__getitem__)
    assert [thing.name for thing in found.objects] == ["jig.plate", "jig.clamp", "jig.clamp.2"]
    assert found.objects[1].place[:3, 3] == pytest.approx([0.8, 0.0, 0.11])
    assert found.is_zone("fence")
    assert not found.is_zone("jig.plate")


def test_object_names_are_unique() -> None:
    box = {"name": "a", "type": "box", "dimensions_mm": [1, 1, 1]}
    config = msgspec.convert({"objects": [box], "zones": [box]}, EnvironmentConfig)
    with pytest.raises(ConfigError, match="used twice"):
        config.build(no_files)


def test_missing_sizes_are_errors_while_the_file_is_read() -> None:
    config = msgspec.convert({"objects": [{"name": "b", "type": "box"}]}, EnvironmentConfig)
    with pytest.raises(ConfigError, match=r"b\.dimensions_mm: wrong size \(got \(0.0, 0.0"):
        config.build(no_files)
    config = msgspec.convert({"objects": [{"name": "m", "type": "mesh"}]}, EnvironmentConfig)
    with pytest.raises(ConfigError, match=r"m\.mesh: the mesh file is missing"):
        config.build(no_files)
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"objects": [{"name": "b", "type": "box", "size": 1}]}, EnvironmentConfig)


def error_of(document: dict[str, object], files: dict[str, bytes]) -> str:
    def read(name: str) -> bytes:
        return files[name] if name in files else no_files(name)

    with pytest.raises(ConfigError) as raised:
        msgspec.convert(document, EnvironmentConfig).build(read)
    return str(raised.value)


def test_errors_have_the_keys_and_units_of_the_file() -> None:
    ball = {"name": "ball", "type": "sphere", "radius_mm": -10}
    assert error_of({"objects": [ball]}, {}).startswith(
        "ball.radius_mm: wrong size (got -10.0); allowed: above 0 and at most 1000000 mm"
    )
    part = {"name": "part", "type": "mesh", "mesh": "part.stl"}
    assert "part.mesh: no file (got 'part.stl')" in error_of({"objects": [part]}, {})
    assert "part.mesh: the mesh has no triangles (got 'part.stl')" in error_of(
        {"objects": [part]}, {"part.stl": b""}
    )
    jig = {"name": "jig", "urdf": "jig.urdf"}
    assert "jig.urdf: no file (got 'jig.urdf')" in error_of({"fixtures": [jig]}, {})


@pytest.mark.parametrize(
    ("joints", "message"),
    [
        ({"joints_mm": {"lfit": 10}}, "jig.joints_mm: unknown joint (got 'lfit'); allowed: lift"),
        ({"joints_deg": {"lift": 10}}, "jig.joints_deg: unknown joint (got 'lift'); allowed: none"),
    ],
)
def test_an_unknown_joint_of_a_fixture_is_an_error(joints: dict[str, object], message: str) -> None:
    jig = {"name": "jig", "urdf": "jig.urdf", **joints}
    assert message in error_of({"fixtures": [jig]}, {"jig.urdf": TABLE.encode()})


def test_prismatic_joints_of_a_fixture_are_in_millimetres() -> None:
    jig = {"name": "jig", "urdf": "jig.urdf", "joints_mm": {"lift": 200}}
    jaw = trimesh.creation.box((10, 10, 10)).export(file_type="stl")
    files = {"jig.urdf": TABLE.encode(), "jaw.stl": jaw}
    found = msgspec.convert({"fixtures": [jig]}, EnvironmentConfig).build(files.__getitem__)
    assert found.objects[1].place[:3, 3] == pytest.approx([0.3, 0.0, 0.31])


def test_the_collision_block() -> None:
    assert CollisionConfig().self_collision_pairs == "auto"
    given = {"enable": True, "self_collision_pairs": [[0, 4], [0, 5]]}
    assert msgspec.convert(given, CollisionConfig).self_collision_pairs == ((0, 4), (0, 5))


@pytest.mark.parametrize("kind", ["stl", "obj", "glb", "ply"])
def test_meshes_are_read_from_bytes(kind: str) -> None:
    data = trimesh.creation.icosphere(1, 10.0).export(file_type=kind)
    mesh = mesh_from_bytes(data if isinstance(data, bytes) else data.encode(), kind, scale=0.001)
    assert len(mesh.triangles) == 80
    assert mesh.closed
    low, high = mesh.bounds()
    assert high - low == pytest.approx(np.full(3, 0.02), abs=2e-3)


@pytest.mark.parametrize("kind", ["stl", "obj", "nonsense"])
def test_bytes_that_are_no_mesh_are_a_config_error(kind: str) -> None:
    with pytest.raises(ConfigError):
        mesh_from_bytes(b"not a mesh at all", kind)


def test_a_transform_must_be_rigid() -> None:
    thing = CollisionObject(
        type=ObjectType.BOX, name="b", dimensions=(1, 1, 1), transform=np.diag([2.0, 1, 1, 1])
    )
    with pytest.raises(ConfigError, match="rotation and a translation"):
        CollisionDetector().add_object(thing)


@pytest.mark.parametrize("indices", [[], [(0, 1, 3)], [(0, -1, 2)]])
def test_triangle_indices_must_be_vertices(indices: list[tuple[int, int, int]]) -> None:
    thing = CollisionObject(type=ObjectType.MESH, name="m", vertices=np.eye(3), indices=indices)
    with pytest.raises(ConfigError, match="three vertex indices each"):
        _ = thing.shape


def test_a_hull_of_points() -> None:
    thing = CollisionObject(type=ObjectType.CONVEX, name="h", vertices=np.eye(3))
    assert isinstance(thing.shape, Hull)
    with pytest.raises(ConfigError, match="rows of x, y, z"):
        _ = CollisionObject(type=ObjectType.CONVEX, name="h", vertices=[1, 2]).shape


def test_a_fixture_from_a_urdf() -> None:
    cube = trimesh.creation.box((50, 50, 50))
    meshes = {"jaw.stl": TriangleMesh(np.array(cube.vertices), np.array(cube.faces))}
    at = translation(1.0, 0.0, 0.0)
    plate, rod, jaw = fixture(TABLE, at=at, values={"lift": 0.2}, meshes=meshes)
    assert [thing.name for thing in (plate, rod, jaw)] == ["jig.plate", "jig.clamp", "jig.clamp.2"]
    assert plate.place[:3, 3] == pytest.approx([1, 0, 0])
    assert rod.place[:3, 3] == pytest.approx([1.3, 0, 0.31])
    assert isinstance(jaw.shape, TriangleMesh)
    low, high = jaw.shape.bounds()
    assert high - low == pytest.approx([0.05] * 3)
    with pytest.raises(ConfigError, match="the mesh file was not loaded"):
        fixture(TABLE)


@pytest.mark.parametrize("name", ["", "n" * 201, "a\nb", "\x1b[31m"])
def test_names_of_objects_are_short_and_printable(name: str) -> None:
    thing = {"name": name, "type": "sphere", "radius_mm": 1.0}
    with pytest.raises((ConfigError, msgspec.ValidationError), match=r"control|length"):
        msgspec.convert({"objects": [thing]}, EnvironmentConfig).build(lambda name: b"")
