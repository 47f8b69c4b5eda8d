"""The keys `parts` and `part_rules` of a cell file. Millimetres, degrees, kg."""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.errors import ConfigError, located_at
from understudy.space.model.appearance import ColorName, MarkerConfig, UpperFace
from understudy.space.model.environment import ObjectName, Xyz, check_name, place
from understudy.space.model.shapes import FARTHEST
from understudy.space.transform import Array, translation
from understudy.units import MM

MOST_PARTS = 500
Row = tuple[float, float, float, float]
Matrix = tuple[Row, Row, Row, Row]
Count = Annotated[int, Meta(ge=1, le=MOST_PARTS)]
ClassName = Annotated[str, Meta(max_length=200)]
Mass = Annotated[float, Meta(gt=0, le=10_000)]
PartType = Literal["box", "cylinder"]


class WorkpieceRules(Struct, frozen=True, forbid_unknown_fields=True):
    """Key `part_rules`: how parts rest and fall. `margin_mm`: taken off every side of a part in
    collision checks, so that a part that rests on a table or is touched by a gripper is no contact.
    `settle_mm`: a part that is released at most this far above its support rests at once; from
    farther it falls."""

    margin_mm: Annotated[float, Meta(ge=0, le=50)] = 1.0
    settle_mm: Annotated[float, Meta(ge=0, le=100)] = 2.0


class Grid(Struct, frozen=True, forbid_unknown_fields=True):
    """Many parts of one kind: columns along x, rows along y, layers along z of the first part."""

    columns: Count = 1
    rows: Count = 1
    layers: Count = 1
    pitch_mm: Xyz = (0.0, 0.0, 0.0)


class WorkpieceValue(Struct, frozen=True):
    """A part without its place. Metres, kg. `size`: along its own axes; the axis of a cylinder
    is z."""

    name: ObjectName
    class_name: ClassName
    type: PartType
    size: tuple[float, float, float]
    mass: Mass
    color: ColorName
    marker: MarkerConfig | None = None


class WorkpieceConfig(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"class_name": "class"}
):
    """One part, or a grid of parts with the names `name_1`, `name_2`, …

    `class`: what vision reports; without it the name. The position is that of the centre. `marker`:
    on the upper face, for cameras.
    """

    name: ObjectName
    class_name: ClassName = ""
    type: PartType = "box"
    dimensions_mm: Xyz = (0.0, 0.0, 0.0)
    radius_mm: float = 0.0
    height_mm: float = 0.0
    position_mm: Xyz
    rotation_deg: Xyz = (0.0, 0.0, 0.0)
    mass_kg: Mass = 0.1
    color: ColorName = "#d9822b"
    marker: MarkerConfig | None = None
    grid: Grid | None = None

    def built(self) -> Iterator[tuple[WorkpieceValue, Array]]:
        """The parts and their places in the cell, 4×4."""
        check_name(self.name)
        check_name(self.class_name)
        first = self._place()
        size = self._size()
        for number, (x, y, z) in enumerate(self._steps(), start=1):
            name = f"{self.name}_{number}" if self.grid else self.name
            value = WorkpieceValue(
                name=name,
                class_name=self.class_name or self.name,
                type=self.type,
                size=size,
                mass=self.mass_kg,
                color=self.color,
                marker=self.marker,
            )
            at = first @ translation(x, y, z)
            if not (abs(at[:3, 3]) <= FARTHEST).all():
                allowed = f"all parts within {FARTHEST:g} m"
                pitch = self.grid.pitch_mm if self.grid else None
                key = f"{self.name}.grid.pitch_mm"
                raise ConfigError("the grid is too large", key=key, value=pitch, allowed=allowed)
            yield value, at

    def check_printed(self) -> None:
        """Checks as `ObjectConfig.check_printed` does."""
        if self.marker is not None:
            with located_at("marker"):
                self.marker.check(self._upper_face())

    def _upper_face(self) -> UpperFace:
        if self.type == "cylinder":
            return UpperFace(2.0 * self.radius_mm, 2.0 * self.radius_mm, round=True)
        return UpperFace(*self.dimensions_mm[:2])

    def _place(self) -> Array:
        try:
            return place(self.position_mm, self.rotation_deg)
        except ConfigError as problem:
            raise problem.within(self.name) from None

    def _steps(self) -> Iterator[Xyz]:
        grid = self.grid or Grid()
        if grid.columns * grid.rows * grid.layers > MOST_PARTS:
            raise _too_many(grid.columns * grid.rows * grid.layers)
        dx, dy, dz = (pitch * MM for pitch in grid.pitch_mm)
        for layer, row, column in product(
            range(grid.layers), range(grid.rows), range(grid.columns)
        ):
            yield column * dx, row * dy, layer * dz

    def _size(self) -> tuple[float, float, float]:
        given: dict[str, tuple[float, ...]] = {"dimensions_mm": self.dimensions_mm}
        if self.type == "cylinder":
            given = {"radius_mm": (self.radius_mm,), "height_mm": (self.height_mm,)}
        for key, values in given.items():
            if not all(0 < value * MM <= FARTHEST for value in values):
                raise ConfigError(
                    "wrong size",
                    key=f"{self.name}.{key}",
                    value=values,
                    allowed=f"above 0 and at most {FARTHEST / MM:.0f} mm",
                )
        if self.type == "cylinder":
            wide = 2.0 * self.radius_mm * MM
            return wide, wide, self.height_mm * MM
        x, y, z = self.dimensions_mm
        return x * MM, y * MM, z * MM


def _too_many(count: int) -> ConfigError:
    return ConfigError("too many parts", value=count, allowed=f"at most {MOST_PARTS} in a cell")


def built_workpieces(configs: Iterable[WorkpieceConfig]) -> dict[str, tuple[WorkpieceValue, Array]]:
    """All parts of a cell file by name; raises a ConfigError if a name is used twice."""
    found: dict[str, tuple[WorkpieceValue, Array]] = {}
    for config in configs:
        for value, at in config.built():
            if value.name in found:
                raise ConfigError("the name is used twice", value=value.name)
            found[value.name] = value, at
            if len(found) > MOST_PARTS:
                raise _too_many(len(found))
    return found
