"""YAML text as plain values, with the line number of every key."""

from dataclasses import dataclass
from typing import Any

import yaml

from understudy.config.yaml12 import Yaml12Loader
from understudy.errors import ConfigError

Keys = tuple[str, ...]
MOST_VALUES = 1_000_000


@dataclass(frozen=True)
class Document:
    """The content of a file and the line number of every key."""

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
    try:
        loader = Yaml12Loader(text)
        node = loader.get_single_node()
        lines: dict[Keys, int] = {}
        if node is not None:
            _Walk(file, lines).into(node, ())
        value = loader.construct_document(node) if node is not None else {}
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        line = mark.line + 1 if mark else 0
        raise ConfigError(f"not YAML: {problem.problem}", file=file, line=line) from None
    except (yaml.YAMLError, ValueError) as problem:
        raise ConfigError(f"not YAML: {problem}", file=file) from None
    except RecursionError:
        raise ConfigError("not YAML: nested too deeply", file=file) from None
    return Document(file, value, lines)


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
        return ConfigError(text, file=self._file, line=line, key=".".join(keys))
