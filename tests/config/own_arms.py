"""Small robot descriptions and meshes, written by the tests that need them."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

AXES = ("0 0 1", "0 1 0", "0 1 0", "1 0 0", "0 1 0", "1 0 0", "0 0 1")
LIMIT = "<limit lower='-1.5' upper='1.5' velocity='2' effort='50'/>"


def solid(mesh: str, name: str = "grey", rgba: str = "0.5 0.5 0.5 1") -> str:
    """Visual and collision shape of a link: a mesh in a colour."""
    shape = f"<geometry><mesh filename='{mesh}'/></geometry>"
    color = f"<material name='{name}'><color rgba='{rgba}'/></material>"
    return f"<visual>{shape}{color}</visual><collision>{shape}</collision>"


def urdf(joints: int = 6, mesh: str = "link.stl", more: str = "") -> str:
    """An arm of so many joints, 0.2 m apart, with the same mesh on every link."""
    links = [f"<link name='l{k}'>{solid(mesh)}</link>" for k in range(joints + 1)]
    moving = [
        f"<joint name='j{k}' type='revolute'><parent link='l{k - 1}'/><child link='l{k}'/>"
        f"<origin xyz='0 0 0.2'/><axis xyz='{AXES[(k - 1) % 7]}'/>{LIMIT}</joint>"
        for k in range(1, joints + 1)
    ]
    return f"<robot name='own'>{''.join(links)}{''.join(moving)}{more}</robot>"


def end(parent: str, name: str) -> str:
    """A frame on a link."""
    return (
        f"<link name='{name}'/><joint name='to_{name}' type='fixed'>"
        f"<parent link='{parent}'/><child link='{name}'/></joint>"
    )


def write_mesh(path: Path, size: float = 0.06) -> Path:
    """A cube in the format of the file's ending, by trimesh; DAE and GLB are red."""
    trimesh: Any = import_module("trimesh")
    cube = trimesh.creation.box(extents=(size, size, size))
    cube.apply_translation((0.0, 0.0, 0.1))
    if path.suffix in (".dae", ".glb"):
        material = trimesh.visual.material.PBRMaterial(baseColorFactor=(255, 0, 0, 255))
        cube.visual = trimesh.visual.TextureVisuals(uv=np.zeros((8, 2)), material=material)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = cube.export(file_type=path.suffix[1:])
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def cell(folder: Path, keys: str) -> Path:
    """A cell file with an arm of these keys."""
    file = folder / "cell.yaml"
    file.write_text(f"robots:\n  arm: {{kind: arm, {keys}}}\n")
    return file
