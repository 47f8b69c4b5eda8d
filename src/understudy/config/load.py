"""Cell files by path or name, read with the configuration classes of the kinds they use."""

from collections.abc import Mapping

from msgspec import Struct

from understudy.config.cell import CellConfig, read_cell
from understudy.config.files import find_cell
from understudy.ports import Endpoint
from understudy.registry import module_of


def load_config(name: str, *, seed: int | None = None) -> CellConfig:
    """The configuration of a cell, by path or by the name of a shipped one."""
    file, text = find_cell(name)
    config = read_config(text, file)
    return config if seed is None else config.with_seed(seed)


def read_config(text: str, file: str) -> CellConfig:
    """The configuration that a cell file's text describes."""
    return read_cell(
        text, file, robot_schema=_robot_config, face_schema=_face_config, sockets=_sockets
    )


def _robot_config(kind: str) -> type[Struct]:
    schema: type[Struct] = module_of("robots", kind).Config
    return schema


def _sockets(kind: str) -> Mapping[str, Endpoint]:
    """Of a face with several sockets; its `build` gives a face for each of them."""
    sockets: Mapping[str, Endpoint] = getattr(module_of("faces", kind), "ENDPOINTS", {})
    return sockets


def _face_config(kind: str) -> type[Struct]:
    schema: type[Struct] = module_of("faces", kind).Config
    return schema
