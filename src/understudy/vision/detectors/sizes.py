"""Sizes of part classes in a file, shared by the detectors that know boxes and cylinders."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from understudy.errors import ConfigError
from understudy.sight.silhouette import Shape, Solid
from understudy.units import MM

Millimetres = Annotated[float, Meta(gt=0, le=100_000)]
Name = Annotated[str, Meta(min_length=1, max_length=100)]


def solid_of(shape: Shape, size_mm: Sequence[float]) -> Solid:
    """``size_mm``: of a box along x, y and z; of a cylinder diameter and height."""
    wanted = 3 if shape == "box" else 2
    if len(size_mm) != wanted:
        raise ConfigError(
            f"the size of a {shape} has {wanted} numbers", key="size_mm", value=list(size_mm)
        )
    sizes = [each * MM for each in size_mm]
    x, y, z = sizes if shape == "box" else (sizes[0], sizes[0], sizes[1])
    return Solid(shape, (x, y, z))


def check_names(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ConfigError("two classes have the same name", key="classes")
