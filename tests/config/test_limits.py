"""Inputs that would take for ever or all memory are refused by a limit that the message names."""

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import trimesh

from understudy.config import load_config, read_config
from understudy.config.document import parse
from understudy.config.files import read_model
from understudy.config.include import read_environment, read_rules
from understudy.config.limits import LARGEST_YAML, MOST_ROBOTS, MOST_VALUES
from understudy.errors import ConfigError
from understudy.simulation.scenario import MOST_RULES
from understudy.space.model import shapes, urdf
from understudy.space.model.environment import MOST_OBJECTS
from understudy.space.model.shapes import MOST_NODES, MOST_TRIANGLES, mesh_from_bytes

# ── YAML ──


def test_a_text_of_many_megabytes_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "cell.yaml"
    file.write_text('description: "' + "x y " * (LARGEST_YAML // 4) + '"\nrobots: {}\n')
    with pytest.raises(ConfigError, match=f"it has more than {LARGEST_YAML} bytes"):
        load_config(str(file))


def many(count: int, row: str) -> str:
    return "".join(row.format(number) for number in range(count))


@pytest.mark.parametrize(
    ("read", "text", "limit"),
    [
        (read_config, "robots:\n" + many(MOST_ROBOTS + 1, " r{}: {{kind: arm}}\n"), MOST_ROBOTS),
        (read_config, "robots: {}\ndevices:\n" + many(MOST_ROBOTS + 1, " r{}:\n"), MOST_ROBOTS),
        (read_config, f"robots: {{{'a' * 65}: {{kind: arm}}}}\n", 64),
        (read_rules, "rules:\n" + many(MOST_RULES + 1, " r{}:\n"), MOST_RULES),
        (read_environment, "objects:\n" + many(MOST_OBJECTS + 1, "- \n"), MOST_OBJECTS),
        (read_environment, "fixtures:\n" + many(MOST_OBJECTS + 1, "- \n"), MOST_OBJECTS),
    ],
    ids=["robots", "devices", "name", "rules", "objects", "fixtures"],
)
def test_too_many_entries_are_refused_before_one_is_read(
    read: Callable[[str, str], object], text: str, limit: int
) -> None:
    with pytest.raises(ConfigError, match=rf"too many \w+ \(got {limit + 1}\); .*at most {limit}"):
        read(text, "a.yaml")


def test_repeated_values_are_counted() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n"
    for here, there in zip("bcdefgh", "abcdefg", strict=True):
        bomb += f"{here}: &{here} [{','.join([f'*{there}'] * 9)}]\n"
    with pytest.raises(ConfigError, match=f"holds more than {MOST_VALUES} values"):
        read_config(bomb, "a.yaml")


@pytest.mark.parametrize("deep", ["[" * 100_000, "{a: " * 100_000, "- " * 100_000])
def test_deep_nesting_is_refused(deep: str) -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        read_config(deep, "a.yaml")


def test_a_mapping_directly_behind_a_colon_is_read() -> None:
    assert parse("a: {2:{b: 1}}", "a.yaml").value == {"a": {2: {"b": 1}}}


def test_a_long_name_is_cut_in_the_message() -> None:
    with pytest.raises(ConfigError) as refused:
        read_config("a: *" + "x" * 100_000, "a.yaml")
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("update_rate_hz", "1e-308"),
        ("update_rate_hz", "1e308"),
        ("joint_inertia", "[1e308]"),
        ("joint_friction", "[1e308]"),
        ("command_delay_ms", "1e308"),
        ("feedback_delay_ms", "1e308"),
        ("default_time_scale", "1e-300"),
        ("default_time_scale", "1e300"),
    ],
)
def test_huge_and_tiny_numbers_are_refused(key: str, value: str) -> None:
    text = f"simulation: {{{key}: {value}}}\nrobots: {{arm: {{kind: arm}}}}\n"
    with pytest.raises(ConfigError, match=rf"{key}.*(out of range|fit) .*allowed: a number"):
        read_config(text, "a.yaml")


# ── URDF ──


@pytest.mark.parametrize(
    ("kind", "element"),
    [
        ("link", "<link name='l{}'/>"),
        ("joint", "<joint name='j{}' type='fixed'/>"),
        ("shape", "<material><geometry/></material>"),
    ],
)
def test_a_urdf_with_too_many_elements_is_refused_before_one_is_read(
    kind: str, element: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for reader in ("_link", "_joint", "_color", "_known"):
        monkeypatch.setattr(urdf, reader, lambda *given: pytest.fail("an element was read"))
    text = f"<robot name='r'>{many(urdf.MOST[kind] + 1, element)}</robot>"
    with pytest.raises(ConfigError, match=f"too many {kind}s .*at most {urdf.MOST[kind]}"):
        urdf.read(text)


def test_the_largest_urdf_is_read() -> None:
    count = urdf.MOST["link"]
    joint = "<joint name='j{0}' type='{1}'><parent link='l{0}'/><child link='l{2}'/>{3}</joint>"
    limit = "<limit lower='-1' upper='1' velocity='1'/>"
    joints = "".join(
        joint.format(n, "revolute" if n < 6 else "fixed", n + 1, limit if n < 6 else "")
        for n in range(count - 1)
    )
    links = many(count, "<link name='l{}'/>")
    model = urdf.read(f"<robot name='r'>{links}{joints}</robot>")
    assert model.tip == f"l{count - 1}"


# ── xacro ──

DOUBLED = (
    "<xacro:macro name='m' params='n'><xacro:if value='${n > 0}'>"
    "<xacro:m n='${n - 1}'/><xacro:m n='${n - 1}'/></xacro:if></xacro:macro><xacro:m n='99'/>"
)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("<xacro:include filename='own.xacro'/>", "macros or files that include themselves"),
        (DOUBLED, "does not come to an end .*1 s of processor time"),
        ("<link name='${9 ** 9 ** 9}'/>", "does not come to an end .*1 s of processor time"),
        ("<link name='${10 ** 10 * [1]}'/>", "it takes more than 1024 MB"),
        ("<link name='${10 ** 7 * str(1)}'/>", "more than 8388608 bytes"),
    ],
    ids=["includes itself", "doubles", "computes", "fills the memory", "writes"],
)
def test_a_xacro_file_without_end_is_refused(
    content: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.config.model_files.LONGEST_XACRO_SECONDS", 1)
    file = tmp_path / "own.xacro"
    file.write_text(f"<robot xmlns:xacro='http://www.ros.org/wiki/xacro'>{content}</robot>")
    with pytest.raises(ConfigError, match=says):
        read_model("own.xacro", beside=str(tmp_path / "cell.yaml"))


# ── meshes ──


def glb(tree: dict[str, object]) -> bytes:
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<4sIIII", b"glTF", 2, 20 + len(text), len(text), 0x4E4F534A) + text


def instanced(nodes: int, triangles: int) -> dict[str, object]:
    return {
        "accessors": [{"count": 3 * triangles, "componentType": 5126, "type": "VEC3"}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "nodes": [{"mesh": 0}] * nodes,
    }


LIBRARY = "http://www.collada.org/2005/11/COLLADASchema"


def dae(levels: int, each: int) -> bytes:
    """Nodes in which the nodes of the level below stand several times."""
    inner = "<instance_node url='#n{}'/>" * each
    nodes = "".join(
        f"<node id='n{level}'>{inner.format(*[level - 1] * each)}</node>"
        for level in range(1, levels)
    )
    return f"<COLLADA xmlns='{LIBRARY}'><node id='n0'/>{nodes}</COLLADA>".encode()


TOO_MUCH = {
    "binary STL": ("stl", b" " * 80 + struct.pack("<I", MOST_TRIANGLES + 1), MOST_TRIANGLES),
    "STL as text": ("stl", b"endfacet\n" * (MOST_TRIANGLES + 1), MOST_TRIANGLES),
    "OBJ": ("obj", b"\nf 1 2 3" * (MOST_TRIANGLES + 1), MOST_TRIANGLES),
    "PLY": ("ply", b"ply\nelement face 999999999\nend_header\n", MOST_TRIANGLES),
    "PLY without data": ("ply", b"ply\nelement vertex 999999999\nend_header\n", 40),
    "GLB": ("glb", glb(instanced(1, MOST_TRIANGLES + 1)), MOST_TRIANGLES),
    "GLB, many times": ("glb", glb(instanced(MOST_NODES, 100)), MOST_TRIANGLES),
    "GLB, many nodes": ("glb", glb({"nodes": [{}] * (MOST_NODES + 1)}), MOST_NODES),
    "GLB without data": ("glb", glb({"accessors": [{"count": 10**9}]}), 60),
    "DAE, nodes in nodes": ("dae", dae(levels=30, each=10), MOST_NODES),
}


@pytest.mark.parametrize(("kind", "data", "limit"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_mesh_that_describes_too_much_is_refused_unread(
    kind: str, data: bytes, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trimesh, "load", lambda *given, **more: pytest.fail("it was read"))
    if kind == "stl" and data.startswith(b" "):
        data += bytes(50 * (MOST_TRIANGLES + 1))
    with pytest.raises(ConfigError, match=f"at most {limit}"):
        mesh_from_bytes(data, kind)


@pytest.mark.parametrize("kind", ["zip", "3mf", "zae", "gltf", "npz", "dict"])
def test_kinds_of_files_that_unpack_or_name_others_are_not_read(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"meshes of this kind are not read.*STL, OBJ, PLY"):
        mesh_from_bytes(b"PK", kind)


def test_a_scene_is_counted_before_it_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a file says about itself: what was read from it is counted again."""
    monkeypatch.setattr("understudy.space.model.shapes.MOST_NODES", 0)
    text = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
    with pytest.raises(ConfigError, match="stand in at most 0 places"):
        shapes.load_scene(text, "obj")
