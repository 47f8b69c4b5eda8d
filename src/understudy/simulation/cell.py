"""A cell: its parts in the order of the cell file, on one time axis; snapshots of it."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from understudy.agenda import advance, earliest
from understudy.errors import ConfigError
from understudy.ports import AnyFace, FaultSource, Part, Snapshot, TimedPart
from understudy.simulation.clock_state import ClockState

SNAPSHOT_FORMAT = 3


class Cell:
    """`TimedCell`: all simulated parts, and the time they have reached."""

    def __init__(
        self,
        name: str,
        *,
        digest: str,
        parts: Mapping[str, Part],
        faces: Mapping[str, AnyFace],
        clock_state: ClockState | None = None,
        disturbed: Mapping[str, FaultSource] | None = None,
    ) -> None:
        self.name = name
        self.digest = digest
        self.parts = dict(parts)
        self.faces = dict(faces)
        self.clock_state = clock_state or ClockState()
        self.disturbed = dict(disturbed or {})
        self.now = 0
        self._timed = [part for part in self.parts.values() if isinstance(part, TimedPart)]

    def next_wake(self) -> int | None:
        return earliest(self._timed)

    def advance(self, to: int, settled: Callable[[int], None] = lambda now: None) -> None:
        """Runs to ``to``; calls ``settled`` after each instant at which something happened."""

        def arrive(now: int) -> None:
            self.now = max(self.now, now)
            settled(self.now)

        advance(self._timed, to, arrive)
        self.now = max(self.now, to)

    def busy(self) -> bool:
        return any(part.busy() for part in self._timed)

    def status(self) -> dict[str, Any]:
        return {name: part.status(self.now) for name, part in self.parts.items()}

    def snapshot(self) -> Snapshot:
        parts = {name: msgspec.to_builtins(part.save()) for name, part in self.parts.items()}
        return Snapshot(SNAPSHOT_FORMAT, self.name, self.digest, self.now, parts)

    def restore(self, snapshot: Snapshot) -> None:
        if snapshot.format != SNAPSHOT_FORMAT:
            raise ConfigError(
                "the snapshot has another format",
                key="format",
                value=snapshot.format,
                allowed=str(SNAPSHOT_FORMAT),
            )
        if snapshot.digest != self.digest:
            raise ConfigError(
                f"the snapshot is of another configuration (cell {snapshot.cell!r}): the cell "
                "file, its seed, or a model or mesh that it names has changed since",
                key="digest",
                value=snapshot.digest,
                allowed=self.digest,
            )
        before = self.snapshot()
        try:
            self._load(snapshot)
        except Exception as problem:  # noqa: BLE001 - a damaged value may raise anything; the state before is restored
            self._load(before)
            raise ConfigError(f"the snapshot is damaged: {str(problem) or repr(problem)}") from None

    def _load(self, snapshot: Snapshot) -> None:
        for name, part in self.parts.items():
            part.load(snapshot.parts[name])
        self.now = snapshot.now


def write_snapshot(snapshot: Snapshot) -> bytes:
    return msgspec.json.encode(snapshot)


def begins_snapshot(head: bytes) -> bool:
    """Whether a file that begins with these bytes was written by `write_snapshot`."""
    return re.match(rb'\{"format":\d+,"cell":"', head) is not None


def read_snapshot(data: bytes) -> Snapshot:
    try:
        return msgspec.json.decode(data, type=Snapshot)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise ConfigError(f"not a snapshot: {problem}") from None
