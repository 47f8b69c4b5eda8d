"""YAML text as plain values that still know the line each of them stands on."""

import re
from dataclasses import dataclass
from typing import Any

import yaml

from understudy.errors import ConfigError

Keys = tuple[str, ...]


class Yaml12Loader(yaml.SafeLoader):
    """YAML as people expect it: `on` and `no` are words, `1e3` is a number."""


_TAGS = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:float")
Yaml12Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag not in _TAGS]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Yaml12Loader.add_implicit_resolver(
    _TAGS[0], re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
Yaml12Loader.add_implicit_resolver(
    _TAGS[1],
    re.compile(
        r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"
        r"|^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$"
    ),
    list("-+0123456789."),
)


@dataclass(frozen=True)
class Document:
    """A file's content: a value, and the line of every key in it."""

    file: str
    value: Any
    lines: dict[Keys, int]

    def error(self, keys: Keys, problem: ConfigError) -> ConfigError:
        """The same error, with file, line and key path."""
        path = keys + tuple(problem.key.split(".")) if problem.key else keys
        line = next(
            (self.lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.lines), 0
        )
        return problem.within(".".join(keys), file=self.file, line=line)


def parse(text: str, file: str) -> Document:
    loader = Yaml12Loader(text)
    try:
        node = loader.get_single_node()
        lines: dict[Keys, int] = {}
        if node is not None:
            _walk(node, (), lines, file)
        value = loader.construct_document(node) if node is not None else {}
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        line = mark.line + 1 if mark else 0
        raise ConfigError(f"not YAML: {problem.problem}", file=file, line=line) from None
    except (yaml.YAMLError, ValueError) as problem:
        raise ConfigError(f"not YAML: {problem}", file=file) from None
    finally:
        loader.dispose()
    return Document(file, value, lines)


def _walk(node: yaml.Node, keys: Keys, lines: dict[Keys, int], file: str) -> None:
    lines.setdefault(keys, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _walk(item, (*keys, str(index)), lines, file)
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        path = (*keys, str(key.value))
        line = key.start_mark.line + 1
        if path in lines:
            where = ".".join(path)
            raise ConfigError(
                f"the key stands here twice, first in line {lines[path]}",
                file=file,
                line=line,
                key=where,
            )
        lines[path] = line
        _walk(value, path, lines, file)
