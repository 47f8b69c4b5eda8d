"""Plain values into frozen structs; errors name the key, the value and what is allowed.

`fields_of` describes the fields of a Config class for forms: name, type, what is allowed, default.
"""

import math
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sized
from functools import cache
from typing import Annotated, Any, Literal

import msgspec.inspect as shape
from msgspec import NODEFAULT, Meta, Struct, to_builtins

from understudy.errors import ConfigError, unknown

MISFIT = "this does not fit"
"""The problem of a value that has another type."""


def read(value: Any, kind: Any, key: str = "") -> Any:
    """``value`` as a ``kind`` (a Struct class or any type msgspec knows), or a ConfigError."""
    info = kind if isinstance(kind, shape.Type) else _type_info(kind)
    reader = _READERS.get(type(info))
    if reader is None:
        raise TypeError(f"a Config class uses a type that cannot be read: {info}")
    return reader(value, info, key)


def _type_info(kind: Any) -> shape.Type:
    return _class_info(kind) if isinstance(kind, type) else shape.type_info(kind)


_class_info = cache(shape.type_info)
"""Looking at a class costs more than reading a value."""


def _struct(value: Any, info: shape.StructType, key: str) -> Any:
    if value is None:
        value = {}
    if not isinstance(value, Mapping):
        raise _wrong(value, "a mapping", key)
    fields = {field.encode_name: field for field in info.fields}
    for name in value:
        if name not in fields:
            raise unknown("key", str(name), fields, key=_join(key, str(name)))
    for name, field in fields.items():
        if field.required and name not in value:
            raise ConfigError(
                "this key is missing", key=_join(key, name), allowed=describe(field.type)
            )
    given = {
        fields[name].name: read(item, fields[name].type, _join(key, name))
        for name, item in value.items()
    }
    try:
        return info.cls(**given)
    except ConfigError as problem:  # `__post_init__`, as the next
        raise problem.within(key) from None
    except ValueError as problem:  # `__post_init__`: keys that do not fit together
        raise ConfigError(str(problem), key=key) from None


def _dict(value: Any, info: shape.DictType, key: str) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(value, describe(info), key)
    _check_length(value, info.max_length, "entries", key)
    return {
        read(_key(name, info.key_type), info.key_type, _join(key, str(name))): read(
            item, info.value_type, _join(key, str(name))
        )
        for name, item in value.items()
    }


def _key(name: Any, info: shape.Type) -> Any:
    """The key of an entry. Keys of JSON are texts, so a whole number may be written as one."""
    written = isinstance(info, shape.IntType) and isinstance(name, str)
    return int(name) if written and re.fullmatch("-?[0-9]{1,18}", name) else name


def _list(value: Any, info: shape.ListType | shape.VarTupleType, key: str) -> Any:
    if not isinstance(value, list | tuple):
        raise _wrong(value, describe(info), key)
    _check_length(value, info.max_length, "entries", key)
    items = [read(item, info.item_type, _join(key, str(n))) for n, item in enumerate(value)]
    return tuple(items) if isinstance(info, shape.VarTupleType) else items


def _tuple(value: Any, info: shape.TupleType, key: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple) or len(value) != len(info.item_types):
        raise _wrong(value, describe(info), key)
    pairs = zip(value, info.item_types, strict=True)
    return tuple(read(item, kind, _join(key, str(n))) for n, (item, kind) in enumerate(pairs))


def _union(value: Any, info: shape.UnionType, key: str) -> Any:
    """The first type that takes the value. If none does, the error is that of the type which was
    meant: one with an error inside, a mapping, or the only type besides None."""
    alone = sum(not isinstance(kind, shape.NoneType) for kind in info.types) == 1
    problems = []
    for kind in info.types:
        try:
            return read(value, kind, key)
        except ConfigError as problem:
            meant = alone or isinstance(kind, shape.StructType)
            if problem.key != key or (meant and problem.problem != MISFIT):
                problems.append(problem)
    raise problems[0] if problems else _wrong(value, describe(info), key)


def _int(value: Any, info: shape.IntType, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(value, describe(info), key)
    return int(_ranged(value, info, key))


def _float(value: Any, info: shape.FloatType, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(value, describe(info), key)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _wrong(value, describe(info), key)
    return _ranged(number, info, key)


def _ranged(value: float, info: shape.IntType | shape.FloatType, key: str) -> float:
    fits = (
        (info.ge is None or value >= info.ge)
        and (info.gt is None or value > info.gt)
        and (info.le is None or value <= info.le)
        and (info.lt is None or value < info.lt)
    )
    if not fits:
        raise ConfigError("out of range", key=key, value=value, allowed=describe(info))
    return value


def _str(value: Any, info: shape.StrType, key: str) -> str:
    if isinstance(value, str):
        _check_length(value, info.max_length, "characters", key)
    if not isinstance(value, str) or (info.pattern and not re.search(info.pattern, value)):
        raise _wrong(value, describe(info), key)
    return value


def _check_length(value: Sized, most: int | None, of: str, key: str) -> None:
    if most is not None and len(value) > most:
        raise ConfigError(f"too many {of}", key=key, value=len(value), allowed=f"at most {most}")


def _bytes(value: Any, info: shape.BytesType, key: str) -> bytes:
    try:
        return b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise _wrong(value, describe(info), key) from None


def _bool(value: Any, info: shape.BoolType, key: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(value, describe(info), key)
    return value


def _none(value: Any, info: shape.NoneType, key: str) -> None:
    if value is not None:
        raise _wrong(value, describe(info), key)


def _literal(value: Any, info: shape.LiteralType, key: str) -> Any:
    if value not in info.values or isinstance(value, bool):
        raise unknown("choice", str(value), map(str, info.values), key=key)
    return value


def _enum(value: Any, info: shape.EnumType, key: str) -> Any:
    choices = {member.value: member for member in info.cls}
    if not isinstance(value, str) or value not in choices:
        raise unknown("choice", str(value), map(str, choices), key=key)
    return choices[value]


def _marked(value: Any, info: shape.Metadata, key: str) -> Any:
    return read(value, info.type, key)


def _any(value: Any, info: shape.AnyType, key: str) -> Any:
    return value


_READERS: dict[type[shape.Type], Callable[[Any, Any, str], Any]] = {
    shape.StructType: _struct,
    shape.DictType: _dict,
    shape.ListType: _list,
    shape.VarTupleType: _list,
    shape.TupleType: _tuple,
    shape.UnionType: _union,
    shape.IntType: _int,
    shape.FloatType: _float,
    shape.StrType: _str,
    shape.BytesType: _bytes,
    shape.BoolType: _bool,
    shape.NoneType: _none,
    shape.LiteralType: _literal,
    shape.EnumType: _enum,
    shape.AnyType: _any,
    shape.Metadata: _marked,
}


def describe(info: shape.Type) -> str:
    """A type in words, for error messages."""
    if isinstance(info, shape.Metadata):
        return describe(info.type)
    if isinstance(info, shape.IntType | shape.FloatType):
        return _describe_range(
            "a whole number" if isinstance(info, shape.IntType) else "a number", info
        )
    if isinstance(info, shape.UnionType):
        return " or ".join(describe(kind) for kind in info.types)
    if isinstance(info, shape.LiteralType):
        return ", ".join(map(str, info.values))
    if isinstance(info, shape.EnumType):
        return ", ".join(str(member.value) for member in info.cls)
    if isinstance(info, shape.TupleType):
        return f"a list of {len(info.item_types)}: {', '.join(map(describe, info.item_types))}"
    if isinstance(info, shape.ListType | shape.VarTupleType):
        return f"a list, each {describe(info.item_type)}"
    if isinstance(info, shape.StrType):
        return f"a text like {info.pattern}" if info.pattern else "a text"
    names = {
        shape.BoolType: "true or false",
        shape.NoneType: "nothing",
        shape.AnyType: "anything",
        shape.BytesType: "a text in base64",
    }
    return names.get(type(info), "a mapping")


def _describe_range(noun: str, info: shape.IntType | shape.FloatType) -> str:
    bounds = {"≥": info.ge, ">": info.gt, "≤": info.le, "<": info.lt}
    limits = " and ".join(
        f"{sign} {bound:g}" for sign, bound in bounds.items() if bound is not None
    )
    return f"{noun} {limits}".strip()


def _wrong(value: Any, allowed: str, key: str) -> ConfigError:
    return ConfigError(MISFIT, key=key, value=value, allowed=allowed)


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


# ── the fields of a Config class ──────────────────────────────────────────────────────────────────


IS_FILE = "file"
"""The `extra` of a key that names a file."""
FieldType = Literal["number", "whole", "switch", "choice", "text", "value"]


FileKey = Annotated[str, Meta(min_length=1, max_length=1024, extra={IS_FILE: True})]
"""A key that names a file beside the cell file."""


def file_keys(config: type[Struct]) -> Iterator[str]:
    """The keys of a Config class that name files."""
    return (each.name for each in fields_of(config) if each.file)


class Field(Struct, frozen=True, omit_defaults=True):
    """A key of a Config class. `type`: `value` is a list or a mapping. `allowed`: in words. `ge`,
    `gt`, `le`, `lt`: limits of a number. `choices`: of a choice. `file`: it names a file."""

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
    """The fields of a class in their order."""
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
