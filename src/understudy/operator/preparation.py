"""Preparation: the long work of a restore, done before the state of the cell is replaced."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from understudy.operator.mesh_builder import MeshBuilder
from understudy.operator.robots import Robots
from understudy.operator.slices import Slices, Work
from understudy.operator.table import safely
from understudy.ports import Snapshot
from understudy.ports.hmi import Later
from understudy.simulation.environment import SavedObject


class Preparation:
    """Reads the programs of a snapshot in slices and repairs its meshes in a worker process. What
    the cell has already is not read again."""

    def __init__(self, robots: Robots, meshes: MeshBuilder, slices: Slices) -> None:
        self._robots = robots
        self._meshes = meshes
        self._slices = slices

    def then(self, snapshot: Snapshot, restore: Callable[[], Any]) -> Any:
        """Calls ``restore`` when everything is prepared; its answer, or a `Later`."""
        ready = self._meshes.prepared(list(saved_objects(snapshot.parts)))

        def go_on(_: object) -> Any:
            read = self._slices.do(self._read_programs(snapshot.parts), "restore")
            if isinstance(read, Later):
                return read.turned(safely(lambda _: restore(), "restore"))
            return restore()

        return go_on(None) if ready is None else ready.turned(safely(go_on, "restore"))

    def _read_programs(self, parts: Mapping[str, Any]) -> Work[bool]:
        for robot in self._robots:
            program, saved = robot.simulated.program, parts.get(f"{robot.name}.program")
            text = saved.get("text") if isinstance(saved, dict) else None
            if program is not None and isinstance(text, str) and text != program.text:
                yield from program.prepare(text)
        return True


def saved_objects(parts: Mapping[str, Any]) -> Iterator[SavedObject]:
    """The objects around and on the robots; a damaged one is left to the restore, which refuses."""
    for state in parts.values():
        groups = [state.get(key) for key in ("objects", "zones", "held")] if _is_dict(state) else []
        for saved in (each for group in groups if isinstance(group, list) for each in group):
            try:
                yield msgspec.convert(saved, SavedObject)
            except (msgspec.ValidationError, ValueError):
                continue


def _is_dict(state: Any) -> bool:
    return isinstance(state, dict)
