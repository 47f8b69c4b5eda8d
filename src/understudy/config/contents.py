"""Hashes of the files that a configuration names: models, meshes, fixtures."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from msgspec import Struct

from understudy.errors import ConfigError
from understudy.space.model.environment import FixtureConfig, ObjectConfig, Read
from understudy.space.model.robot import Mesh
from understudy.space.model.urdf import elements


def contents(config: Any, read: Read) -> dict[str, str]:
    """A hash of each file by its name; empty for a file that cannot be read."""
    found: dict[str, str] = {}
    names = list(_named(config))
    while names:
        name = names.pop()
        if name in found:
            continue
        try:
            data = read(name)
        except ConfigError:
            found[name] = ""  # the part that needs the file reports it
            continue
        found[name] = sha256(data).hexdigest()
        names += _meshes(data)
    return found


def _named(config: Any) -> Iterator[str]:
    if isinstance(config, ObjectConfig):
        yield from filter(None, (config.mesh,))
    elif isinstance(config, FixtureConfig):
        yield config.urdf
    elif isinstance(config, Struct):
        for key in ("model", "file"):
            if isinstance(name := getattr(config, key, None), str):
                yield name
        for key in config.__struct_fields__:
            yield from _named(getattr(config, key))
    elif isinstance(config, dict | list | tuple):
        for value in config.values() if isinstance(config, dict) else config:
            yield from _named(value)


def _meshes(data: bytes) -> list[str]:
    """The mesh files that a URDF names; empty for any other file."""
    try:
        _, links, _ = elements(data.decode("utf-8", "replace"))
    except ConfigError:
        return []
    shapes = [solid.geometry for link in links for solid in link.collision]
    return [shape.filename for shape in shapes if isinstance(shape, Mesh)]
