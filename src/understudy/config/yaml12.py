"""YAML 1.2's core schema: `on` and `no` are words, `1e3` is a number, `010` is ten."""

import re
from typing import Any

import yaml


class Yaml12Loader(yaml.SafeLoader):
    """Knows null, bool, int, float, str, seq and map; no other tag."""


def _null(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> None:
    loader.construct_scalar(node)


def _bool(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> bool:
    text = _text(loader, node)
    if text not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text == "true"


def _int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = _text(loader, node)
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text if base == 10 else text[2:], base)


def _float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    return float(_text(loader, node).replace(".inf", "inf").replace(".nan", "nan"))


def _text(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node)).lower()


# Pattern and first characters of plain scalars; the first match counts, the rest are texts.
_SCALARS: dict[str, tuple[str, list[str], Any]] = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""], _null),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF"), _bool),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789"), _int),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+0123456789."),
        _float,
    ),
}
_TAG = "tag:yaml.org,2002:"

Yaml12Loader.yaml_implicit_resolvers = {}
Yaml12Loader.yaml_constructors = {
    tag: yaml.SafeLoader.yaml_constructors[tag]
    for tag in (f"{_TAG}str", f"{_TAG}seq", f"{_TAG}map", None)
}
for _name, (_looks, _begins, _read) in _SCALARS.items():
    Yaml12Loader.add_implicit_resolver(_TAG + _name, re.compile(f"^(?:{_looks})$"), _begins)
    Yaml12Loader.add_constructor(_TAG + _name, _read)
Yaml12Loader.add_implicit_resolver(f"{_TAG}merge", re.compile("^<<$"), ["<"])
