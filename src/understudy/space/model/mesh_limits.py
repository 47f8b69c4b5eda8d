"""Checks of a mesh file before it is read: its kind, and how much it says that it holds.

A small file can describe a huge scene: counts without data, or one mesh that stands in a thousand
places, each of which stands in a thousand places. `check_mesh_file` adds up what the file itself
says; `check_scene` what was read, before it is copied to its places.
"""

import json
import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from xml.etree import ElementTree

from understudy.errors import ConfigError

MOST_TRIANGLES = 250_000
"""Triangles of a mesh."""
MOST_NODES = 10_000
"""Places in a DAE or GLB file in which its meshes stand."""
_DAE = "{http://www.collada.org/2005/11/COLLADASchema}"


def check_triangles(count: int, most: int = MOST_TRIANGLES, of: str = "a mesh") -> None:
    """Raises a ConfigError if there are too many triangles."""
    if count > most:
        raise ConfigError(
            "too many triangles", value=count, allowed=f"{of} has at most {most}: simplify it"
        )


def check_nodes(count: int) -> None:
    if count > MOST_NODES:
        allowed = f"meshes of one file stand in at most {MOST_NODES} places"
        raise ConfigError("too many nodes", value=count, allowed=allowed)


def check_mesh_file(data: bytes, kind: str) -> None:
    """Raises a ConfigError if the file is of another kind, or describes too much."""
    if kind not in CHECKS:
        allowed = ", ".join(name.upper() for name in CHECKS)
        raise ConfigError("meshes of this kind are not read", value=kind, allowed=allowed)
    CHECKS[kind](data)


def check_scene(scene: Any) -> None:
    """Raises a ConfigError if the meshes of a trimesh scene, each in its places, are too much."""
    nodes = scene.graph.nodes_geometry
    check_nodes(len(nodes))
    sizes = {name: len(getattr(each, "faces", ())) for name, each in scene.geometry.items()}
    check_triangles(sum(sizes[scene.graph[node][1]] for node in nodes))


# ── kinds ───────────────────────────────────────────────────────────────────────────────────────


def _stl(data: bytes) -> None:
    """84 bytes and 50 for each triangle; or a text with a line for each."""
    stated = struct.unpack_from("<I", data, 80)[0] if len(data) >= 84 else 0
    binary = len(data) == 84 + 50 * stated
    check_triangles(stated if binary else data.count(b"endfacet"))


def _obj(data: bytes) -> None:
    check_triangles(data.count(b"\nf "))


def _ply(data: bytes) -> None:
    """Its header states the rows of each element; a row has at least one byte."""
    header = data.partition(b"end_header")[0]
    for line in header.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == b"element" and words[2].isdigit():
            if words[1] == b"face":
                check_triangles(int(words[2]))
            if int(words[2]) > len(data):
                rows = f"at most {len(data)}, the bytes of the file"
                raise ConfigError("its header states too many rows", value=line, allowed=rows)


def _glb(data: bytes) -> None:
    """The counts of the JSON chunk; an accessor without data would be filled with zeros."""
    try:
        size = struct.unpack_from("<I", data, 12)[0]
        tree = json.loads(data[20 : 20 + size])
        accessors = [int(each.get("count", 0)) for each in tree.get("accessors", ())]
        nodes = tree.get("nodes", [])
        sizes = [_glb_triangles(mesh, accessors) for mesh in tree.get("meshes", ())]
        total = sum(sizes[node["mesh"]] for node in nodes if "mesh" in node)
    except (struct.error, ValueError, TypeError, KeyError, IndexError, AttributeError) as problem:
        raise ConfigError(f"not a mesh: {type(problem).__name__} in its JSON chunk") from None
    check_nodes(len(nodes))
    check_triangles(total)
    if (most := max(accessors, default=0)) > len(data):
        allowed = f"at most {len(data)}, the bytes of the file"
        raise ConfigError("an accessor states too many values", value=most, allowed=allowed)


def _glb_triangles(mesh: Mapping[str, Any], accessors: list[int]) -> int:
    corners = (p.get("indices", p["attributes"]["POSITION"]) for p in mesh["primitives"])
    return sum(accessors[index] // 3 for index in corners)


def _dae(data: bytes) -> None:
    """Nodes may stand in other nodes, which multiplies them."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise ConfigError("document types and entities are not allowed")
    if b"instance_node" not in data:
        return
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError:
        raise ConfigError("not a mesh: not XML") from None
    known = {f"#{node.get('id')}": node for node in root.iter(f"{_DAE}node")}

    @cache
    def places(url: str) -> int:
        inner = [each.get("url", "") for each in known[url].iter(f"{_DAE}instance_node")]
        count = 1 + sum(min(places(each), MOST_NODES + 1) for each in inner if each in known)
        check_nodes(count)
        return count

    try:
        check_nodes(sum(places(url) for url in known))
    except RecursionError:
        raise ConfigError("not a mesh: nodes that stand in themselves, or too deeply") from None


CHECKS: Mapping[str, Callable[[bytes], None]] = {
    "stl": _stl,
    "obj": _obj,
    "ply": _ply,
    "dae": _dae,
    "glb": _glb,
}
