"""Endpoints of a cell that can be pseudo-terminals, and the wire of one that is."""

from collections.abc import Iterator

from understudy.config.cell import CellConfig, endpoint_name
from understudy.config.wires import read_wire
from understudy.ports import Endpoint
from understudy.registry import module_of
from understudy.wire.interface import Wire

TERMINAL = "pty"
"""The wire, and the key that selects it."""


def possible_terminals(config: CellConfig) -> dict[str, Endpoint]:
    """The endpoints that a pseudo-terminal can carry, by their full names."""
    return dict(_possible(config))


def _possible(config: CellConfig) -> Iterator[tuple[str, Endpoint]]:
    for robot_name, robot in config.robots.items():
        for face_name, face in robot.faces.items():
            for suffix in face.wires:
                endpoint = module_of("faces", face.kind).ENDPOINTS[suffix]
                if TERMINAL in endpoint.wires:
                    yield endpoint_name(robot_name, face_name, suffix), endpoint


def on_terminal(endpoint: Endpoint, link: str) -> Wire:
    """The wire of an endpoint on a pseudo-terminal; an empty ``link`` is the default one."""
    return read_wire(endpoint, {TERMINAL: link})
