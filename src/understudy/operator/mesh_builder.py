"""MeshBuilder: objects with meshes, built beside the event loop.

    thread: read the files ──▶ worker process: triangles, surface, tree ──▶ thread: the objects

Files are parsed in a worker process with a limit of memory: a mesh file can be damaged or hostile,
and its repair takes seconds. What comes back are arrays in a shared file, which are mapped, not
copied. Nothing of the cell is changed here.
"""

import tempfile
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from understudy.errors import ConfigError, Refused
from understudy.operator.background import CANCELLED, ENDED, MESHES, BackgroundRuns
from understudy.operator.background_worker import Progress
from understudy.ports.hmi import Later
from understudy.space.model.shapes import ReadMesh, TriangleMesh

if TYPE_CHECKING:
    from understudy.simulation.environment import SavedObject

T = TypeVar("T")
Build = Callable[[ReadMesh], T]
"""Builds objects, given how mesh files are read; called twice with the same outcome."""

MOST_BYTES = 256 * 1024 * 1024
"""Bytes of all mesh files of one command."""
Key = tuple[int, str, float]


class WantedFiles:
    """The mesh files that objects need; a small mesh stands for each of them."""

    def __init__(self) -> None:
        self.files: dict[Key, bytes] = {}
        corners = np.vstack([np.zeros(3), np.eye(3)])
        faces = np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])
        self._stand_in = TriangleMesh(corners, faces)

    def read(self, data: bytes, kind: str, scale: float) -> TriangleMesh:
        self.files[id(data), kind, scale] = data
        if sum(map(len, self.files.values())) > MOST_BYTES:
            raise ConfigError(
                "the mesh files are too large", allowed=f"at most {MOST_BYTES} bytes together"
            )
        return self._stand_in

    def store(self, shared: IO[bytes]) -> list[dict[str, Any]]:
        """Writes the files to one file; returns where they are."""
        wanted = []
        for (_, kind, scale), data in self.files.items():
            at = shared.seek(0, 2)
            shared.write(data)
            wanted.append({"at": at, "size": len(data), "kind": kind, "scale": scale})
        shared.flush()
        return wanted


def _shared_file() -> IO[bytes]:
    """A file for the cell and a worker; its opener closes it."""
    return tempfile.TemporaryFile()


def stored(meshes: Sequence[TriangleMesh]) -> Sequence[TriangleMesh]:
    """Copies the geometry of meshes to where collision checks read it."""
    from understudy.space.collision.solids import geometry

    geometry(meshes)
    for mesh in meshes:
        mesh.bounds()
    return meshes


class MeshBuilder:
    """Builds meshes by worker processes and threads of ``runs``."""

    def __init__(self, runs: BackgroundRuns) -> None:
        self._runs = runs

    def built(self, read: Callable[[], Build[T]]) -> Later:
        """The outcome of the `Build` that ``read`` gives, or a refusal. Both run in a thread."""
        outcome, wanted, shared = Later(), WantedFiles(), _shared_file()
        outcome.then(lambda _: shared.close())

        def first(progress: Progress) -> Any:
            build = read()
            found = build(wanted.read)
            if not wanted.files:
                return found, None
            try:
                return build, wanted.store(shared)
            except ValueError:  # the file is closed: the command was cancelled
                return ENDED

        def parse(answer: Any) -> None:
            if isinstance(answer, Refused) or answer[1] is None:
                outcome.settle(answer if isinstance(answer, Refused) else answer[0])
                return
            build, places = answer
            self._in_process(shared, places, lambda meshes: finish(build, meshes), outcome)

        def finish(build: Build[T], meshes: Sequence[TriangleMesh]) -> None:
            known = dict(zip(wanted.files, meshes, strict=True))
            ready: ReadMesh = lambda data, kind, scale: known[id(data), kind, scale]  # noqa: E731

            def work(progress: Progress) -> T:
                stored(meshes)
                return build(ready)

            self._begin(self._runs.in_thread("objects", work), outcome.settle)

        self._begin(self._runs.in_thread("read_files", first), parse)
        return outcome

    def prepared(self, things: "Sequence[SavedObject]") -> Later | None:
        """Repairs the meshes of saved objects before they are used; None if all are known. The
        answer keeps them until they are used."""
        from understudy.operator.mesh_arrays import store_array
        from understudy.space.model.shapes import is_prepared

        try:
            new = [
                thing
                for thing in things
                if thing.indices and not is_prepared(thing.points(), thing.triangles())
            ]
        except ValueError:  # bytes that are no rows of numbers: the restore refuses them
            return None
        if not new:
            return None
        outcome, shared = Later(), _shared_file()
        outcome.then(lambda _: shared.close())
        places = [
            {
                "vertices": msgspec.to_builtins(store_array(shared, thing.points(), "<f8")),
                "triangles": msgspec.to_builtins(store_array(shared, thing.triangles(), "<i8")),
            }
            for thing in new
        ]
        shared.flush()

        def finish(meshes: Sequence[TriangleMesh]) -> None:
            self._begin(self._runs.in_thread("objects", lambda _: stored(meshes)), outcome.settle)

        self._in_process(shared, places, finish, outcome)
        return outcome

    def _in_process(
        self,
        shared: IO[bytes],
        wanted: list[dict[str, Any]],
        then: Callable[[list[TriangleMesh]], None],
        outcome: Later,
    ) -> None:
        """Calls ``then`` with the meshes, or settles the outcome with a refusal."""

        def map_arrays(result: Any) -> None:
            from understudy.operator.mesh_arrays import ArrayFile, StoredMesh

            if isinstance(result, Refused):
                known = result in (ENDED, CANCELLED)
                reason = Refused(f"the meshes were not read: {result.reason}")
                outcome.settle(result if known else reason)
                return
            stored, arrays = msgspec.json.decode(result, type=list[StoredMesh]), ArrayFile(shared)
            then([arrays.mesh(each) for each in stored])

        self._begin(self._runs.in_process(MESHES, {"meshes": wanted}, shared), map_arrays)

    def _begin(self, later: Later | Refused, then: Callable[[Any], None]) -> None:
        if isinstance(later, Refused):
            then(later)
        else:
            later.then(then)
