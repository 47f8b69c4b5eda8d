"""Checks of the markers and boards on parts, objects and tools of a cell, without OpenCV."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from understudy.config.document import Document
from understudy.errors import located_at
from understudy.simulation.workpieces.config import WorkpieceConfig
from understudy.space.model.appearance import UpperFace
from understudy.space.model.environment import EnvironmentConfig, ObjectConfig

PRINTED = ("marker", "board")


def check_looks(
    document: Document,
    parts: Iterable[WorkpieceConfig],
    environment: EnvironmentConfig,
    robots: Mapping[str, Any],
) -> None:
    """Raises ConfigError for a marker or a board that does not exist, or is larger than the upper
    face of what it is on."""
    for number, part in enumerate(parts):
        if part.marker is not None:
            with located_at(f"parts.{number}.marker"):
                part.marker.check(_upper_face(part))
    with located_at("environment"):
        check_objects(environment)
    for name in _robots_with_patterns(document):
        if name in robots:
            for key, thing in _objects(robots[name].config, f"robots.{name}"):
                _check_object(key, thing)


def check_objects(environment: EnvironmentConfig) -> None:
    """As `check_looks`, for the objects of an environment."""
    for number, thing in enumerate(environment.objects):
        _check_object(f"objects.{number}", thing)


def _check_object(key: str, thing: ObjectConfig) -> None:
    for name in PRINTED:
        printed = getattr(thing, name)
        if printed is not None:
            with located_at(f"{key}.{name}"):
                printed.check(thing.upper_face())


def _upper_face(part: WorkpieceConfig) -> UpperFace:
    if part.type == "cylinder":
        return UpperFace(2.0 * part.radius_mm, 2.0 * part.radius_mm, round=True)
    return UpperFace(*part.dimensions_mm[:2])


def _robots_with_patterns(document: Document) -> set[str]:
    """Robots with a marker or a board: a cell may have thousands of others."""
    return {keys[1] for keys in document.lines if keys[:1] == ("robots",) and keys[-1] in PRINTED}


def _objects(config: Any, key: str) -> Iterator[tuple[str, ObjectConfig]]:
    """The shapes of tools and held objects in the configuration of a robot, with their keys."""
    if isinstance(config, ObjectConfig):
        yield key, config
    elif isinstance(config, Struct):
        names = zip(config.__struct_encode_fields__, config.__struct_fields__, strict=True)
        for written, name in names:
            yield from _objects(getattr(config, name), f"{key}.{written}")
    elif isinstance(config, Mapping):
        for name, value in config.items():
            yield from _objects(value, f"{key}.{name}")
    elif isinstance(config, list | tuple):
        for number, value in enumerate(config):
            yield from _objects(value, f"{key}.{number}")
