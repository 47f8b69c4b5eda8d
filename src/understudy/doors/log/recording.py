"""Writes the channels of a cell into an MCAP file, in a thread with a bounded queue.

A chunk is closed at least twice a second of wall time, so that a process that is killed loses no
more than the last second. Times are simulated ones. `sequence` numbers all messages in the order in
which they happened. A snapshot of the cell is a message of `/understudy/snapshot`; the first one
comes before everything else, and the distance between two is doubled when they have become large.
"""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct

from understudy import __version__
from understudy.app.live import Live
from understudy.config import CellConfig
from understudy.config.files import SHIPPED, name_of_cell
from understudy.doors.channels import (
    CellChannels,
    Channel,
    Message,
    channels_of,
    channels_on_virtual_time,
)
from understudy.errors import ConfigError, NotInstalledError, needs
from understudy.operator.cell import OperatedCell
from understudy.ports import Run, Snapshot
from understudy.simulation.cell import write_snapshot
from understudy.units import NS_PER_SECOND
from understudy.wire.exchange import InProcessCell

log = logging.getLogger(__name__)

MOST_WAITING = 20_000
"""Messages that wait for the thread; what comes then is dropped and counted."""
FLUSH_SECONDS = 0.4
CHUNK_BYTES = 1 << 20
SNAPSHOT_PERIOD = 10 * NS_PER_SECOND
MOST_SNAPSHOT_BYTES = 64 << 20
"""Bytes of snapshots after which the distance between two of them is doubled."""
ENDING_SECONDS = 10.0
HEADER, FILES = "understudy", "cell/"
"""Name of the metadata with the facts of a run, and begin of the names of attached cell files."""
MOST_FILES, MOST_FILE_BYTES = 500, 64 << 20
SNAPSHOT = Channel(
    "/understudy/snapshot", "understudy.snapshot", b'{"type":"object"}', is_state=False, native=True
)
DROPPED = Channel(
    "/understudy/dropped",
    "understudy.dropped",
    b'{"type":"object","properties":{"messages":{"type":"integer"}}}',
    is_state=False,
)


class Facts(Struct, frozen=True):
    """What is needed to build the cell of a log again. `cell`: its name, or its file among the
    attached ones."""

    cell: str
    name: str
    digest: str
    seed: int
    run: str
    epoch_ns: int
    seed_given: bool
    started: str = ""
    version: str = __version__


def facts_of(config: CellConfig, run: Run) -> Facts:
    file = config.document.file
    own = "" if file.endswith(SHIPPED) else Path(file).name
    return Facts(
        own or name_of_cell(file),
        config.name,
        config.digest,
        config.head.seed,
        run.id,
        run.epoch.ns,
        run.seed_given,
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def cell_files(config: CellConfig) -> dict[str, bytes]:
    """The cell file and the files beside it that it names, and those that these name, by their
    path; none of a shipped cell."""
    file = Path(config.document.file)
    if config.document.file.endswith(SHIPPED) or not file.is_file():
        return {}
    folder = file.absolute().parent
    others = {
        each.relative_to(folder).as_posix(): each
        for each in islice(folder.rglob("*"), MOST_FILES)
        if each.is_file() and not each.is_symlink()
    }
    found: dict[str, bytes] = {}
    waiting, size = [file.name], 0
    while waiting:
        name = waiting.pop()
        data = others.pop(name).read_bytes() if name in others else b""
        size += len(data)
        if size > MOST_FILE_BYTES:
            log.warning("%s: too large for a log; files of the cell are missing there", name)
            break
        found[name] = data
        waiting += [each for each in others if Path(each).name.encode() in data]
    return found


class LogWriter:
    """An MCAP file that is written in a thread of its own."""

    def __init__(self, path: Path, facts: Facts, files: Mapping[str, bytes] = {}) -> None:
        try:
            from mcap.writer import Writer
        except ImportError:
            raise NotInstalledError(f"a log {needs('mcap')}") from None
        self.path = path
        self.dropped = 0
        self.written = 0
        """Messages in the file."""
        self.problem = ""
        self.last_at = 0
        self._files = files
        self._queue: queue.Queue[tuple[int, Message] | None] = queue.Queue(MOST_WAITING)
        self._sequence = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream: IO[bytes] = path.open("wb")
        except OSError as problem:
            raise ConfigError(
                f"--log cannot be written: {problem.strerror}", file=str(path)
            ) from None
        self._writer = Writer(self._stream, chunk_size=CHUNK_BYTES)
        self._writer.start(profile="", library=f"understudy {__version__}")
        plain = {key: str(value) for key, value in msgspec.structs.asdict(facts).items()}
        self._writer.add_metadata(HEADER, plain)
        for name, data in files.items():
            kind = "application/octet-stream"
            self._writer.add_attachment(0, 0, FILES + name, kind, data)
        self._ids: dict[Channel, int] = {}
        self._thread = threading.Thread(target=self._run, name=f"log {path.name}", daemon=True)
        self._thread.start()

    def put(self, message: Message) -> None:
        """Takes a message; drops it if the thread is too far behind, or has given up."""
        self._sequence += 1
        try:
            self._queue.put_nowait((self._sequence, message))
        except queue.Full:
            self.dropped += 1

    def wait_for_room(self) -> None:
        """Waits until half of the queue is free: on virtual time nothing need be dropped."""
        while self._queue.qsize() > MOST_WAITING // 2 and self._thread.is_alive():
            time.sleep(0.01)

    def close(self) -> None:
        """Writes what waits, and the index."""
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=ENDING_SECONDS)
        self._thread.join(ENDING_SECONDS)
        if self._thread.is_alive() and not self.problem:
            self.problem = "the thread of the log has not ended"
        if self.problem:
            log.warning("%s: the end of the log is missing: %s", self.path, self.problem)
        if self.dropped:
            log.warning("%s: %d messages were dropped", self.path, self.dropped)

    # ── the thread ──

    def _run(self) -> None:
        try:
            self._write_all()
        except Exception as problem:  # noqa: BLE001 (a full disk must not end the cell)
            self.problem = str(problem)
            while self._queue.get() is not None:  # the queue must not fill up
                self.dropped += 1
        finally:
            with contextlib.suppress(OSError):
                self._stream.close()

    def _write_all(self) -> None:
        flush_at, shown = time.monotonic() + FLUSH_SECONDS, 0
        while True:
            try:
                item = self._queue.get(timeout=max(0.0, flush_at - time.monotonic()))
            except queue.Empty:
                self._writer.flush()  # type: ignore[no-untyped-call]
                flush_at = time.monotonic() + FLUSH_SECONDS
                continue
            if item is None:
                break
            self._write(*item)
            if time.monotonic() >= flush_at:
                if self.dropped > shown:
                    shown = self.dropped
                    self._write(item[0], Message(DROPPED, item[1].at, {"messages": shown}))
                self._writer.flush()  # type: ignore[no-untyped-call]
                flush_at = time.monotonic() + FLUSH_SECONDS
        self._writer.finish()  # type: ignore[no-untyped-call]

    def _write(self, sequence: int, message: Message) -> None:
        channel = message.channel
        if channel not in self._ids:
            schema = self._writer.register_schema(channel.schema_name, "jsonschema", channel.schema)
            kept = {"native": "yes"} if channel.native else {}
            kept |= {"state": "yes"} if channel.is_state else {}
            self._ids[channel] = self._writer.register_channel(channel.topic, "json", schema, kept)
        at = message.at
        self._writer.add_message(self._ids[channel], at, message.json(), at, sequence)
        self.last_at = max(self.last_at, at)
        self.written += 1


class Recording:
    """A log that is being written: the channels of a cell, and snapshots of it."""

    def __init__(
        self,
        channels: CellChannels,
        writer: LogWriter,
        snapshot: Callable[[], Snapshot],
        *,
        waits: bool = False,
    ) -> None:
        """``snapshot``: is called between two steps of the cell. ``waits``: nothing is dropped."""
        self.writer = writer
        self._channels = channels
        self._waits = waits
        self._snapshot = snapshot
        self._period = SNAPSHOT_PERIOD
        self._bytes = 0
        self._last = -1
        self.take_snapshot()
        self._stop = channels.listen(self.put)

    def put(self, message: Message) -> None:
        if self._waits:
            self.writer.wait_for_room()
        self.writer.put(message)

    def take_snapshot(self) -> None:
        snapshot = self._snapshot()
        self._last = snapshot.now
        data = write_snapshot(snapshot)
        self._bytes += len(data)
        if self._bytes > MOST_SNAPSHOT_BYTES:
            self._bytes, self._period = self._bytes // 2, self._period * 2
        self.put(Message(SNAPSHOT, snapshot.now, msgspec.Raw(data)))

    def look(self, now: int) -> None:
        """Takes a snapshot if one is due, or if time was set back."""
        if now - self._last >= self._period or now < self._last:
            self.take_snapshot()

    # ── `Recorder` of a cell on virtual time ──

    @property
    def due(self) -> int:
        return self._channels.due

    def next_reading(self, to: int) -> int | None:
        return self._channels.next_reading(to)

    def read(self, now: int) -> None:
        self._channels.read(now)
        self.look(now)

    def acted(self, now: int) -> None:
        self._channels.acted(now)

    # ── the end ──

    def stop(self) -> None:
        self._channels.finish()
        self._stop()

    def close(self) -> None:
        self.stop()
        self.writer.close()


LOOK_SECONDS = 0.25


_running: WeakKeyDictionary[OperatedCell, list[Recording]] = WeakKeyDictionary()


def running_logs(cell: OperatedCell) -> list[Recording]:
    """The logs that are being written of a live cell."""
    return _running.setdefault(cell, [])


def start_recording(cell: OperatedCell, path: Path) -> tuple[Recording, Callable[[], None]]:
    """Begins a log of a live cell. The returned function ends it, but for what the thread has still
    to write (`LogWriter.close`)."""
    config, path = cell.config, path.absolute()
    writer = LogWriter(path, facts_of(config, cell.fix_run()), cell_files(config))
    recording = Recording(channels_of(cell), writer, cell.pump.snapshot)
    loop = cell.loop
    timer = [loop.call_later(LOOK_SECONDS, lambda: look())]

    def look() -> None:
        timer[0] = loop.call_later(LOOK_SECONDS, look)
        recording.look(cell.pump.now())

    running_logs(cell).append(recording)

    def end() -> None:
        timer[0].cancel()
        recording.stop()
        running_logs(cell).remove(recording)

    return recording, end


@asynccontextmanager
async def open_door(live: Live, value: str) -> AsyncIterator[dict[str, str]]:
    """Records while the cell runs: `run --log FILE.mcap`."""
    recording, end = start_recording(live.operator, Path(value))
    try:
        yield {}
    finally:
        end()
        await live.operator.loop.run_in_executor(None, recording.writer.close)


@contextmanager
def recorded(path: Path, config: CellConfig, run: Run, cell: InProcessCell) -> Iterator[Recording]:
    """Records a cell on virtual time, which may wait for the disk."""
    writer = LogWriter(path, facts_of(config, run), cell_files(config))
    channels = channels_on_virtual_time(config, cell)
    recording = Recording(channels, writer, cell.snapshot, waits=True)
    cell.recorder = recording  # type: ignore[assignment]
    try:
        yield recording
    finally:
        recording.close()
