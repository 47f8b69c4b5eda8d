"""Values changed in the text of a cell file: everything else, comments too, stays as it is."""

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import yaml

from understudy.config.cell import CellConfig, read_document
from understudy.config.document import Document, Yaml12Loader
from understudy.errors import ConfigError
from understudy.offline.fit import Keys, Recorded
from understudy.offline.fit.estimate import CONFIDENCE, Estimate, Fit

PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
"""Texts that need no quotes; `true`, `false` and `null` are no names here."""
IN_CELL_FILES: tuple[Keys, ...] = (("robots",), ("scenario",))
"""Begins of the keys that stand in cell files; others belong in files of a robot."""
DIGITS = 7
"""Significant digits of the values that are written."""


def number(value: float) -> str:
    return f"{value:.{DIGITS}g}"


def fitted_text(text: str, found: Fit, recorded: Recorded, *, robot: str, recording: str) -> str:
    """The text of a cell file with the visible estimates of a robot, and their intervals."""
    written = [each for each in found.visible if each.keys[:1] in IN_CELL_FILES]
    if not written:
        raise ConfigError(
            "nothing that this recording shows stands in the cell file",
            key="--out",
            allowed="no --out: the values are printed, with the places where they belong",
        )
    changes: dict[Keys, str] = {
        ("scenario", "rules", name, key): value
        for name, rule in recorded.rules.items()
        if any(each.keys[:3] == ("scenario", "rules", name) for each in written)
        for key, value in rule.items()
    }
    for keys, value in recorded.lists.items():
        needed = any(each.keys[: len(keys)] == keys for each in written)
        if needed and _at(text, keys) is None:
            text = with_value(text, keys, value)
    changes |= {each.keys: number(each.value) for each in written}
    for keys, value in changes.items():
        text = with_value(text, keys, value)
    values: dict[tuple[str, ...], str] = {
        ("recording",): yaml_text(recording),
        ("confidence",): number(CONFIDENCE),
        **{("intervals", each.key): _interval(each) for each in written},
    }
    if _child(yaml.compose(text, Loader=Yaml12Loader), "fit") is not None:
        for keys, value in values.items():
            text = with_value(text, ("fit", robot, *keys), value)
        return text
    head, *intervals = [f"{yaml_key(keys[-1])}: {value}" for keys, value in values.items()]
    lines = [f"    {head}", f"    {intervals.pop(0)}", "    intervals:"]
    lines += [f"      {line}" for line in intervals]
    return "\n".join([text.rstrip(), "fit:", f"  {robot}:", *lines, ""])


def _interval(each: Estimate) -> str:
    low, high = number(each.low), number(each.high)
    return f"{{low: {low}, high: {high}, seen_from: {yaml_text(each.seen_from)}}}"


def yaml_text(value: str) -> str:
    """A text as a scalar of YAML that can stand anywhere."""
    return value if PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)


def with_value(text: str, keys: Keys, value: str) -> str:
    """The text with another value at a key; the key is added if it is not there."""
    node = yaml.compose(text, Loader=Yaml12Loader)
    if node is None:
        return f"{text.rstrip()}\n{_nested(keys, value)}\n".lstrip("\n")
    depth = 0
    for depth, key in enumerate(keys):  # noqa: B007
        below = _child(node, key)
        if below is None:
            break
        node = below
    else:
        return text[: node.start_mark.index] + value + text[node.end_mark.index :]
    rest = keys[depth:]
    if isinstance(node, yaml.ScalarNode) and node.value == "":  # a key without a value
        at = node.start_mark.index
        return f"{text[:at]} {{{_nested(rest, value)}}}{text[at:]}"
    if not isinstance(node, yaml.MappingNode) or not node.value:
        raise ConfigError(
            "the cell file has no mapping here, so that no value can be added",
            key=".".join(map(str, keys[:depth])),
        )
    if node.flow_style:
        at = node.start_mark.index + 1
        return f"{text[:at]}{_nested(rest, value)}, {text[at:]}"
    if depth == 0:
        return f"{text.rstrip()}\n{_nested(rest, value)}\n"
    first = node.value[0][0].start_mark
    return f"{text[: first.index]}{_nested(rest, value)}\n{' ' * first.column}{text[first.index :]}"


def _nested(keys: Keys, value: str) -> str:
    """`a: {b: {c: value}}`"""
    for key in reversed(keys[1:]):
        value = f"{{{yaml_key(key)}: {value}}}"
    return f"{yaml_key(keys[0])}: {value}"


def yaml_key(key: str | int) -> str:
    return str(key) if isinstance(key, int) else yaml_text(key)


def _at(text: str, keys: Keys) -> yaml.Node | None:
    """The node of a key, None if the text has none."""
    node: yaml.Node | None = yaml.compose(text, Loader=Yaml12Loader)
    for key in keys:
        node = _child(node, key) if node is not None else None
    return node


def _child(node: yaml.Node, key: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode):
        return node.value[key] if isinstance(key, int) and key < len(node.value) else None
    if isinstance(node, yaml.MappingNode):
        return next((value for name, value in node.value if name.value == str(key)), None)
    return None


def with_values(config: CellConfig, values: Mapping[str, float]) -> CellConfig:
    """The cell with other values at these keys, given as in the section `fit`."""
    body: Any = deepcopy(config.document.value)
    for key, value in values.items():
        place, words = body, key.split(".")
        for n, word in enumerate(words):
            found = _key_in(place, word, key)
            if n == len(words) - 1:
                whole = isinstance(place[found], int) and float(value).is_integer()
                place[found] = int(value) if whole else value
            else:
                place = place[found]
    return read_document(Document(config.document.file, body, config.document.lines))


def _key_in(place: Any, word: str, key: str) -> str | int:
    """The key of a mapping, or index of a list, that a word names."""
    if isinstance(place, list) and word.isdecimal() and int(word) < len(place):
        return int(word)
    found = next((each for each in place if str(each) == word), None) if place else None
    if not isinstance(place, dict) or found is None:
        raise ConfigError("the cell file has no value at this key", key=f"fit: {key}")
    return found  # type: ignore[no-any-return]
