"""Changes the objects in a file with an environment, and leaves the rest of its text as it is.

Only the texts of the values that differ are replaced, so that comments, order and spelling stay.
What is removed goes with the comments inside it and behind it on its line.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import yaml
from msgspec import NODEFAULT, Struct, structs, to_builtins

from understudy.config.document import Document, Yaml12Loader, parse
from understudy.config.typed import read
from understudy.errors import ConfigError
from understudy.space.model.environment import EnvironmentConfig

GROUPS = ("objects", "fixtures", "zones")
PLAIN = re.compile(r"[A-Za-z][\w.-]*")
NOT_PLAIN = ("true", "false", "null", "nan", "inf")
DIGITS = 6
"""Decimals of a written number: mm and degrees."""

Keys = tuple[str, ...]
Edit = tuple[int, int, str]
"""Begin, end, and the text in place of what is between them."""


def environment_of(document: Document, keys: Keys) -> EnvironmentConfig:
    """The environment in a file; ``keys``: of its section, none for an environment file."""
    value: Any = document.value
    for key in keys:
        value = (value or {}).get(key)
    found: EnvironmentConfig = document.at(keys, read, value or {}, EnvironmentConfig)
    return found


def with_environment(text: str, file: str, keys: Keys, wanted: EnvironmentConfig) -> str:
    """The text of a file with these objects, fixtures and zones in its section.

    Raises a ConfigError for a text in which they cannot be replaced, such as one with aliases."""
    there = environment_of(parse(text, file), keys)
    quoted = file.endswith(".json")
    changed = text if text.endswith("\n") or not text else f"{text}\n"
    for group in GROUPS:
        before, after = (_values(getattr(each, group)) for each in (there, wanted))
        if before != after:
            changed = _apply(changed, _edits(changed, (*keys, group), before, after, quoted))
    if _all(environment_of(parse(changed, file), keys)) != _all(wanted):
        allowed = "change this file by hand: it repeats values by aliases, or is written unusually"
        raise ConfigError(
            "the environment cannot be replaced in this file", file=file, allowed=allowed
        )
    return changed


def _all(environment: EnvironmentConfig) -> list[dict[str, dict[str, Any]]]:
    return [_values(getattr(environment, group)) for group in GROUPS]


def _values(group: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The keys of each object that differ from their defaults, by its name."""
    return {each.name: _without_defaults(each) for each in group}


def _without_defaults(config: Struct) -> dict[str, Any]:
    values = {field.name: getattr(config, field.name) for field in structs.fields(config)}
    usual = {field.name: _default(field) for field in structs.fields(config)}
    found: dict[str, Any] = to_builtins({n: v for n, v in values.items() if v != usual[n]})
    return found


def _default(field: structs.FieldInfo) -> Any:
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


def rounded(value: float) -> float:
    return round(value, DIGITS) + 0.0


# ── edits of the text ──


def _apply(text: str, edits: Sequence[Edit]) -> str:
    for begin, end, put in sorted(edits, reverse=True):
        text = text[:begin] + put + text[end:]
    return text


def _edits(
    text: str,
    keys: Keys,
    before: Mapping[str, Mapping[str, Any]],
    after: Mapping[str, Mapping[str, Any]],
    quoted: bool,
) -> list[Edit]:
    """What turns one list of objects into another."""
    root = yaml.compose(text, Loader=Yaml12Loader) if text.strip() else None
    sequence = _below(root, keys)
    new = [_flow(value, quoted) for name, value in after.items() if name not in before]
    if not isinstance(sequence, yaml.SequenceNode) or not sequence.value:
        return [_new_list(text, root, keys, sequence, new, quoted)]
    items = dict(zip(before, sequence.value, strict=True))
    if sequence.flow_style or not after:
        rows = [
            text[items[name].start_mark.index : items[name].end_mark.index]
            if value == before.get(name)
            else _flow(value, quoted)
            for name, value in after.items()
        ]
        return [(sequence.start_mark.index, _end(sequence), f"[{', '.join(rows)}]")]
    edits: list[Edit] = []
    for name, node in items.items():
        if name not in after:
            edits.append(
                (_line_start(text, node.start_mark.index), _line_end(text, _end(node)), "")
            )
        elif after[name] != before[name]:
            edits += _changed(text, node, before[name], after[name], quoted)
    last = sequence.value[-1]
    indent = " " * sequence.start_mark.column
    at = _line_end(text, _end(last))
    edits += [(at, at, "".join(f"{indent}- {row}\n" for row in new))] if new else []
    return edits


def _changed(
    text: str, node: yaml.Node, before: Mapping[str, Any], after: Mapping[str, Any], quoted: bool
) -> Iterator[Edit]:
    """Replaces the values of an object that differ. One that loses keys is written anew."""
    pairs = {key.value: value for key, value in node.value} if _is_mapping(node) else {}
    differ = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    added = [key for key in differ if key not in pairs]
    here = _is_mapping(node) and (node.flow_style or not added)
    if not here or any(key not in after for key in differ):
        yield node.start_mark.index, _end(node), _flow(after, quoted)
        return
    for key in differ:
        if key in pairs:
            yield pairs[key].start_mark.index, _end(pairs[key]), _flow(after[key], quoted)
    if added:
        at = _end(node.value[-1][1])
        yield (
            at,
            at,
            "".join(f", {_key(key, quoted)}: {_flow(after[key], quoted)}" for key in added),
        )


def _new_list(
    text: str,
    root: yaml.Node | None,
    keys: Keys,
    sequence: yaml.Node | None,
    rows: list[str],
    quoted: bool,
) -> Edit:
    """A list where there was none, or an empty one."""
    if sequence is not None:
        begin, end = sequence.start_mark.index, _end(sequence)
        space = "" if text[begin - 1 : begin].isspace() else " "
        return begin, end, f"{space}[{', '.join(rows)}]"
    known = next(
        (n for n in range(len(keys) - 1, -1, -1) if _is_mapping(_below(root, keys[:n]))), 0
    )
    parent = _below(root, keys[:known])
    missing = keys[known:]
    if isinstance(parent, yaml.MappingNode) and parent.flow_style:
        inner = f"[{', '.join(rows)}]"
        for key in reversed(missing[1:]):
            inner = f"{{{_key(key, quoted)}: {inner}}}"
        at = parent.start_mark.index + 1
        more = ", " if parent.value else ""
        return at, at, f"{_key(missing[0], quoted)}: {inner}{more}"
    indent = " " * parent.start_mark.column if isinstance(parent, yaml.MappingNode) else ""
    lines = [f"{indent}{'  ' * depth}{key}:\n" for depth, key in enumerate(missing)]
    lines += [f"{indent}{'  ' * len(missing)}- {row}\n" for row in rows]
    at = len(text)
    if isinstance(parent, yaml.MappingNode) and known:
        at = _line_start(text, parent.start_mark.index)
    return at, at, "".join(lines)


def _below(node: yaml.Node | None, keys: Keys) -> yaml.Node | None:
    for key in keys:
        if not isinstance(node, yaml.MappingNode):
            return None
        node = next((value for name, value in node.value if name.value == key), None)
    return node


def _is_mapping(node: yaml.Node | None) -> TypeGuard[yaml.MappingNode]:
    return isinstance(node, yaml.MappingNode)


def _end(node: yaml.Node) -> int:
    """Where the text of a node ends, without the empty lines and comments behind it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    """The position behind the end of the line."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _flow(value: Any, quoted: bool) -> str:
    if isinstance(value, Mapping):
        rows = (f"{_key(key, quoted)}: {_flow(each, quoted)}" for key, each in value.items())
        return f"{{{', '.join(rows)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_flow(each, quoted) for each in value)}]"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"{rounded(value):.12g}"
    return _key(str(value), quoted)


def _key(text: str, quoted: bool) -> str:
    plain = not quoted and PLAIN.fullmatch(text) and text.lower() not in NOT_PLAIN
    return text if plain else json.dumps(text, ensure_ascii=False)
