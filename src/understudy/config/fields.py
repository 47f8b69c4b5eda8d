"""The fields of a Config class, for forms: name, type, what is allowed, default."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec.inspect as shape
from msgspec import NODEFAULT, Meta, Struct, to_builtins

from understudy.config.typed import describe

IS_FILE = "file"
"""The `extra` of a key that names a file."""
FieldType = Literal["number", "whole", "switch", "choice", "text", "value"]


IS_FILE = "file"
FileKey = Annotated[str, Meta(min_length=1, max_length=1024, extra={IS_FILE: True})]
"""A key that names a file beside the cell file."""


def file_keys(config: type[Struct]) -> Iterator[str]:
    """The keys of a Config class that name files."""
    return (each.name for each in fields_of(config) if each.file)


class Field(Struct, frozen=True, omit_defaults=True):
    """`type`: `value` is a list or a mapping. `allowed`: in words. `ge`, `gt`, `le`, `lt`: limits
    of a number. `choices`: of a choice. `file`: it names a file."""

    name: str
    type: FieldType
    allowed: str
    required: bool = False
    default: Any = None
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    choices: tuple[str, ...] = ()
    file: bool = False


def fields_of(config: type[Struct]) -> list[Field]:
    """In the order of the class."""
    info = shape.type_info(config)
    assert isinstance(info, shape.StructType)
    return [_field(each) for each in info.fields]


def _field(field: shape.Field) -> Field:
    info = field.type
    file = isinstance(info, shape.Metadata) and bool((info.extra or {}).get(IS_FILE))
    if isinstance(info, shape.Metadata):
        info = info.type
    limits: dict[str, Any] = {}
    if isinstance(info, shape.IntType | shape.FloatType):
        limits = {key: getattr(info, key) for key in ("ge", "gt", "le", "lt")}
    if isinstance(info, shape.LiteralType):
        limits = {"choices": tuple(map(str, info.values))}
    return Field(
        name=field.encode_name,
        type=_TYPES.get(type(info), "value"),
        allowed=describe(info),
        required=field.required,
        default=_default(field),
        file=file,
        **limits,
    )


_TYPES: dict[type[shape.Type], FieldType] = {
    shape.FloatType: "number",
    shape.IntType: "whole",
    shape.BoolType: "switch",
    shape.LiteralType: "choice",
    shape.StrType: "text",
}


def _default(field: shape.Field) -> Any:
    made = field.default if field.default_factory is NODEFAULT else field.default_factory()
    return None if made is NODEFAULT else to_builtins(made, str_keys=True)
