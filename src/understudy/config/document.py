"""YAML text as plain values, with the line number of every key."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from understudy.config.limits import MOST_VALUES
from understudy.config.typed import read
from understudy.errors import LONGEST_SHOWN, ConfigError


class Yaml12Loader(yaml.SafeLoader):
    """Knows null, bool, int, float, str, seq and map; no other tag."""


def _null(loader: SafeConstructor, node: yaml.ScalarNode) -> None:
    loader.construct_scalar(node)


def _bool(loader: SafeConstructor, node: yaml.ScalarNode) -> bool:
    text = _text(loader, node)
    if text not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text == "true"


def _int(loader: SafeConstructor, node: yaml.ScalarNode) -> int:
    text = _text(loader, node)
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text if base == 10 else text[2:], base)


def _float(loader: SafeConstructor, node: yaml.ScalarNode) -> float:
    return float(_text(loader, node).replace(".inf", "inf").replace(".nan", "nan"))


def _text(loader: SafeConstructor, node: yaml.ScalarNode) -> str:
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


if yaml.__with_libyaml__:
    from yaml._yaml import CParser

    class FastLoader(Composer, CParser, SafeConstructor, Resolver):
        """Reads with libyaml, three times as fast as PyYAML. The nodes are composed in Python:
        libyaml's own composer crashes the process where a text is nested very deeply."""

        yaml_implicit_resolvers = Yaml12Loader.yaml_implicit_resolvers
        yaml_constructors = Yaml12Loader.yaml_constructors

        def __init__(self, text: str) -> None:
            CParser.__init__(self, text)
            Composer.__init__(self)
            SafeConstructor.__init__(self)
            Resolver.__init__(self)

else:
    FastLoader = Yaml12Loader  # type: ignore[misc, assignment]


Keys = tuple[str, ...]
Config = TypeVar("Config")


@dataclass(frozen=True)
class Document:
    """The content of a file and the line number of every key."""

    file: str
    value: Any
    lines: dict[Keys, int]

    def error(self, keys: Keys, problem: ConfigError) -> ConfigError:
        """The same error, with file, line and key path. One in another file, which this one names,
        keeps its own line or has none."""
        if problem.file not in ("", self.file):
            return problem.within(".".join(keys))
        path = keys + tuple(problem.key.split(".")) if problem.key else keys
        line = next(
            (self.lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.lines), 0
        )
        return problem.within(".".join(keys), file=self.file, line=line)

    def at(self, keys: Keys, reader: Callable[..., Any], *arguments: Any) -> Any:
        """Runs a reader; its ConfigError gets file, line and key path."""
        try:
            return reader(*arguments)
        except ConfigError as problem:
            raise self.error(keys, problem) from None

    def read(self, kind: type[Config]) -> Config:
        """The whole content as a Config class."""
        found: Config = self.at((), read, self.value, kind)
        return found


YAML_CURES = {
    "'\\t'": "spaces in place of tabs",
    "mapping values": "one key in a line, or {…} around several",
}
"""What is allowed where the parser names one of these."""


def parse(text: str, file: str) -> Document:
    wrong = "not JSON" if file.endswith(".json") else "not YAML"  # which includes JSON
    try:
        try:
            value, lines = _loaded(FastLoader(text), file)
        except yaml.YAMLError:  # libyaml refuses some texts that PyYAML reads, as {2:{a: 1}}
            value, lines = _loaded(Yaml12Loader(text), file)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        line = mark.line + 1 if mark else 0
        reason = str(problem.problem)[:LONGEST_SHOWN]
        allowed = next((cure for part, cure in YAML_CURES.items() if part in reason), "")
        raise ConfigError(f"{wrong}: {reason}", file=file, line=line, allowed=allowed) from None
    except (yaml.YAMLError, ValueError) as problem:
        raise ConfigError(f"{wrong}: {str(problem)[:LONGEST_SHOWN]}", file=file) from None
    except RecursionError:
        raise ConfigError(f"{wrong}: nested too deeply", file=file) from None
    if not isinstance(value, dict | None):  # the value is not shown: it may be any file
        raise ConfigError("this does not fit", file=file, line=lines[()], allowed="a mapping")
    return Document(file, value, lines)


def _loaded(loader: "FastLoader | Yaml12Loader", file: str) -> tuple[Any, dict[Keys, int]]:
    lines: dict[Keys, int] = {}
    node = loader.get_single_node()
    if node is None:
        return {}, lines
    _Walk(file, lines).into(node, ())
    return loader.construct_document(node), lines


class _Walk:
    """Notes the line of every key; reports repeated keys and nodes that contain themselves."""

    def __init__(self, file: str, lines: dict[Keys, int]) -> None:
        self._file = file
        self._lines = lines
        self._around: list[yaml.Node] = []

    def into(self, node: yaml.Node, keys: Keys) -> None:
        self._lines.setdefault(keys, node.start_mark.line + 1)
        if node in self._around:
            raise self._problem("this contains itself", node, keys)
        if len(self._lines) > MOST_VALUES:
            raise ConfigError(f"holds more than {MOST_VALUES} values", file=self._file)
        self._around.append(node)
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.into(item, (*keys, str(index)))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                self._pair(key, value, keys)
        self._around.pop()

    def _pair(self, key: yaml.Node, value: yaml.Node, keys: Keys) -> None:
        path = (*keys, str(key.value))
        if path in self._lines:
            first = self._lines[path]
            raise self._problem(f"the key stands here twice, first in line {first}", key, path)
        self._lines[path] = key.start_mark.line + 1
        self.into(value, path)

    def _problem(self, text: str, node: yaml.Node, keys: Keys) -> ConfigError:
        line = node.start_mark.line + 1
        place = ".".join(keys)
        allowed = "each key once" if "twice" in text else ""
        return ConfigError(text, file=self._file, line=line, key=place, allowed=allowed)
