"""Key `detectors` of the section `vision`: each table has its `kind` and the keys of this kind."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Annotated, Any

import msgspec
import msgspec.inspect as shape
from msgspec import Meta, to_builtins

from understudy.config.typed import IS_FILE, read
from understudy.errors import ConfigError, NotInstalledError, located_at, needs, unknown
from understudy.registry import kinds, module_of
from understudy.vision.interface import Detector, ReadFile

KIND = "kind"
MOST_DETECTORS = 32
LARGEST = 32 * 1024
"""Bytes of detectors that are not those of a file, as JSON: half of a request for a picture."""
FindFile = Callable[[str], object]
"""Raises ConfigError if there is no file of this name."""
DetectorTables = Annotated[tuple[dict[str, Any], ...], Meta(max_length=MOST_DETECTORS)]


def require_opencv() -> None:
    """Raises NotInstalledError with the command that installs what vision needs."""
    if find_spec("cv2") is None:
        raise NotInstalledError(f"vision {needs('opencv-python-headless', 'pyzmq')}")


def check_detectors(tables: Sequence[Mapping[str, Any]]) -> None:
    """Raises ConfigError with the key of what is wrong; without OpenCV only kinds are checked."""
    if not tables:
        raise ConfigError(
            "the vision process finds nothing without detectors",
            key="detectors",
            allowed="- {kind: markers}",
        )
    for number, table in enumerate(tables):
        with located_at(f"detectors.{number}"):
            kind = _kind(table)
            if find_spec("cv2") is not None:
                _config(kind, table)


def check_files(tables: Sequence[Mapping[str, Any]], find: FindFile) -> None:
    """Raises ConfigError with the key of a file that is not there."""
    for number, table in enumerate(tables):
        for key, name in _files_of(table):
            with located_at(f"detectors.{number}.{key}"):
                find(name)


def build_detectors(
    tables: Iterable[Mapping[str, Any]], read_file: ReadFile
) -> Sequence[tuple[str, Detector]]:
    """Kind and detector of each table; ConfigError with the key of what is wrong."""
    require_opencv()
    found = []
    for number, table in enumerate(tables):
        with located_at(f"detectors.{number}"):
            kind = _kind(table)
            found.append(
                (kind, module_of("detectors", kind).build(_config(kind, table), read_file))
            )
    return found


def _kind(table: Mapping[str, Any]) -> str:
    kind = table.get(KIND)
    if not isinstance(kind, str):
        raise ConfigError("which kind of detector?", key=KIND, allowed="kind: markers")
    if kind not in kinds("detectors"):
        raise unknown("kind of detector", kind, kinds("detectors"), key=KIND)
    return kind


def _config(kind: str, table: Mapping[str, Any]) -> Any:
    keys = {key: value for key, value in table.items() if key != KIND}
    return read(keys, module_of("detectors", kind).Config)


# ── other detectors than those of the file ──────────────────────────────────────────────────────


class DetectorChoice:
    """The detectors of a section `vision`, and the check of others that are to take their place.

    A file may be named as often as the section names it, and no other file: a client that sets
    detectors must not open files, nor load a network many times."""

    def __init__(self, configured: Iterable[Mapping[str, Any]]) -> None:
        self.configured: list[dict[str, Any]] = [plain(table) for table in configured]

    def check(self, tables: Sequence[Mapping[str, Any]]) -> None:
        """Raises ConfigError with the key of what is wrong."""
        check_detectors(read(list(tables), DetectorTables, "detectors"))
        if (size := len(msgspec.json.encode(tables))) > LARGEST:
            allowed = f"at most {LARGEST}"
            raise ConfigError("too many bytes", key="detectors", value=size, allowed=allowed)
        left = self._files()
        for number, table in enumerate(tables):
            for key, name in _files_of(table):
                if not left[name]:
                    raise _not_named(name, self._files(), key=f"detectors.{number}.{key}")
                left[name] -= 1

    def build(
        self, tables: Sequence[Mapping[str, Any]], read_file: ReadFile
    ) -> Sequence[tuple[str, Detector]]:
        """Builds detectors as `build_detectors` does, after the check."""
        self.check(tables)
        left = self._files()

        def read_named(name: str) -> bytes:
            if not left[name]:  # by a key that its Config class does not declare as a FileName
                raise _not_named(name, self._files())
            left[name] -= 1
            return read_file(name)

        return build_detectors(tables, read_named)

    def _files(self) -> Counter[str]:
        return Counter(name for table in self.configured for _, name in _files_of(table))


def plain(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table as JSON has it: keys are texts."""
    found: dict[str, Any] = to_builtins(table, str_keys=True)
    return found


def _not_named(name: str, files: Counter[str], *, key: str = "") -> ConfigError:
    problem = "not a file of the configured detectors, or named more often than there"
    return ConfigError(problem, key=key, value=name, allowed=", ".join(files) or "none")


def _files_of(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Key and name of the files of a table; without OpenCV they are not known."""
    if find_spec("cv2") is not None:
        keys = shape.type_info(module_of("detectors", _kind(table)).Config)
        yield from _named_files(table, keys)


def _named_files(value: Any, info: shape.Type, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(info, shape.Metadata):
        if (info.extra or {}).get(IS_FILE) and isinstance(value, str):
            yield key, value
    elif isinstance(info, shape.UnionType):
        for kind in info.types:
            yield from _named_files(value, kind, key)
    elif isinstance(info, shape.StructType) and isinstance(value, Mapping):
        for field in info.fields:
            name = f"{key}.{field.encode_name}".strip(".")
            yield from _named_files(value.get(field.encode_name), field.type, name)
    elif isinstance(info, shape.ListType | shape.VarTupleType) and isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _named_files(each, info.item_type, f"{key}.{number}")
