"""Commands and queries for recordings: begin, end, list, download, delete; the time line; fork.

Recordings are in the folder `recordings` of the folder for files of the run. Together they have a
limit on the disk: the oldest ones are deleted when a new one needs their room, and a recording that
alone needs more ends.
"""

import asyncio
import base64
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from understudy.doors.log.file import LogFile, event_of, marks_of, ns
from understudy.doors.log.recording import Recording, running_logs, start_recording
from understudy.errors import ConfigError, Refused, unknown
from understudy.operator.background import BackgroundRuns
from understudy.operator.table import Command, command, commands_of, query
from understudy.ports.hmi import Later
from understudy.units import seconds
from understudy.wire.chat import escape
from understudy.wire.child_process import ends_with_this_process

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

FOLDER, ENDING = "recordings", ".mcap"
MOST_BYTES = 2 << 30
"""Size of all recordings together."""
MOST_MARKS, MOST_JOURNAL, MOST_POINTS = 3000, 200, 600
PART_BYTES = 1 << 20
MOST_FORKS = 3
FORK_SECONDS = 180.0
LOOK_SECONDS = 0.25
LONGEST_ROW = 240
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]


def commands(cell: "OperatedCell") -> list[Command]:
    if find_spec("mcap") is None:
        return []
    return commands_of(Recordings(cell))


class Recordings:
    """The recordings of a cell, the one that is being made, and runs that were forked."""

    def __init__(self, cell: "OperatedCell") -> None:
        self._cell = cell
        self._runs: BackgroundRuns = cell.runs
        self._folder = cell.files.path / FOLDER
        self._recording: tuple[Recording, Callable[[], None]] | None = None
        self._open: dict[Path, LogFile] = {}
        self._forks: list[asyncio.subprocess.Process] = []

    # ── recordings ──

    @query()
    def recordings(self) -> dict[str, Any]:
        """The recordings, the newest first, and the one that is being made."""
        running = {log.writer.path: log.writer for log in running_logs(self._cell)}
        rows = []
        for path in self._paths():
            writer = running.get(path)
            rows.append(
                {
                    "name": path.name,
                    "bytes": path.stat().st_size,
                    "running": writer is not None,
                    "to_s": seconds(writer.last_at) if writer else self._length(path),
                    "dropped": writer.dropped if writer else 0,
                }
            )
        return {"recordings": rows, "most_bytes": MOST_BYTES, "recording": bool(self._recording)}

    @command()
    def record_start(self, name: Name | None = None) -> Any:
        """Begin a recording.

        `name`: of its file; default: cell and time.
        """
        if self._recording is not None:
            return Refused("a recording is being made; record_stop ends it")
        plain = name or f"{self._cell.config.name}-{time.strftime('%Y%m%d-%H%M%S')}"
        path = self._folder / f"{plain.removesuffix(ENDING)}{ENDING}"
        if path.exists():
            return Refused(f"{path.name} is there already; choose another name")
        self._make_room()
        try:
            self._recording = start_recording(self._cell, path)
        except ConfigError as problem:
            return Refused(str(problem))
        self._cell.loop.call_later(LOOK_SECONDS, self._watch_size)
        return {"name": path.name}

    @command()
    def record_stop(self) -> Any:
        """End the recording."""
        if self._recording is None:
            return Refused("no recording is being made; record_start begins one")
        recording, end = self._recording
        self._recording = None
        end()
        answer = {"name": recording.writer.path.name, "dropped": recording.writer.dropped}
        later = self._runs.beside(lambda: recording.writer.close())
        return later if isinstance(later, Refused) else later.turned(lambda _: answer)

    @command()
    def delete_recording(self, name: Name) -> Any:
        """Delete a recording."""
        path = self._find(name)
        if isinstance(path, Refused):
            return path
        if any(log.writer.path == path for log in running_logs(self._cell)):
            return Refused(f"{name} is being written; record_stop ends it")
        self._open.pop(path, None)
        path.unlink(missing_ok=True)
        return self.recordings()

    @query(large=True)
    def recording_part(self, name: Name, offset: Annotated[int, Meta(ge=0)] = 0) -> Any:
        """A part of a recording, as base64: at most 1 MiB from a byte on."""
        path = self._find(name)
        if isinstance(path, Refused):
            return path
        with path.open("rb") as stream:
            stream.seek(offset)
            data = stream.read(PART_BYTES)
        size = path.stat().st_size
        return {"data": base64.b64encode(data).decode(), "offset": offset, "bytes": size}

    # ── the time line ──

    @query(large=True)
    def timeline(self, name: Name, since_s: float = -1.0) -> Any:
        """Length of a recording, and its marks.

        Marks are alarms, collisions, faults, program lines and snapshots. `since_s`: later ones.
        """
        log = self._log(name)
        if isinstance(log, Refused):
            return log
        first, last = log.span
        since = -1 if since_s < 0 else ns(since_s)
        marks = marks_of(log, since)
        robots = [topic.split("/")[1] for topic in log.schemas if topic.endswith("/state")]
        return {
            "name": name,
            "from_s": seconds(first),
            "to_s": seconds(last),
            "whole": log.whole,
            "robots": robots,
            "marks": marks[-MOST_MARKS:],
        }

    @query(large=True)
    def timeline_at(self, name: Name, at_s: Seconds, scene: bool = True) -> Any:
        """What was at an instant of a recording.

        The view of the robots, parts, programs, the journal up to then. `scene`: the geometry, too.
        """
        log = self._log(name)
        if isinstance(log, Refused):
            return log
        at = ns(at_s)
        programs = [topic for topic in log.schemas if topic.endswith("/program")]
        topics = ["/understudy/view", "/understudy/parts", *programs]
        found = log.at([*topics, "/understudy/scene"] if scene else topics, at)
        shown = {
            topic.rpartition("/")[2]: found[topic].value for topic in topics[:2] if topic in found
        }
        if scene and "/understudy/scene" in found:
            shown["scene"] = found["/understudy/scene"].value
        lines = {topic.split("/")[1]: found[topic].value for topic in programs if topic in found}
        return {"at_s": at_s, **shown, "programs": lines, "journal": self._journal(log, at)}

    @query(large=True)
    def timeline_curves(self, name: Name, robot: Name) -> Any:
        """The joints of a robot, or its position, over the whole recording: at most 600 points."""
        log = self._log(name)
        if isinstance(log, Refused):
            return log
        rows: list[tuple[float, list[float]]] = []
        names: list[str] = []
        topic = f"/{robot}/joint_states"
        if topic in log.schemas:
            for entry in log.messages([topic]):
                joints = entry.value["joints"]
                names = [each["name"] for each in joints]
                rows.append((seconds(entry.at), [each["position"] for each in joints]))
        else:
            names = ["x", "y", "z"]
            for entry in log.messages([f"/{robot}/pose", f"/{robot}/tool_pose"]):
                place = entry.value["pose"]["position"]
                rows.append((seconds(entry.at), [place[each] for each in names]))
        step = -(-len(rows) // MOST_POINTS) or 1
        return {"robot": robot, "names": names, "rows": rows[::step]}

    def _journal(self, log: LogFile, at: int) -> list[dict[str, Any]]:
        """The last messages up to an instant."""
        wires = [topic for topic in log.schemas if topic.startswith("/journal/")]
        found: list[dict[str, Any]] = []
        begin = at
        first, _ = log.span
        while wires and len(found) < MOST_JOURNAL and begin > first:
            end, begin = begin, max(first - 1, begin - ns(20.0))
            entries = log.messages(wires, begin + 1, end)
            rows = sorted(entries, key=lambda each: each.sequence)[-MOST_JOURNAL:]
            found = [_row(event_of(each)) for each in rows] + found
        return found[-MOST_JOURNAL:]

    # ── fork ──

    @command(secret="always")
    def fork_recording(self, name: Name, at_s: Seconds) -> Any:
        """Run the cell of a recording from an instant on, as a new run with a page of its own."""
        path = self._find(name)
        if isinstance(path, Refused):
            return path
        self._forks = [each for each in self._forks if each.returncode is None]
        if len(self._forks) >= MOST_FORKS:
            return Refused(f"{MOST_FORKS} forks run already; stop one: understudy stop")
        later = Later()
        task = self._cell.loop.create_task(self._fork(path, at_s, later))
        task.add_done_callback(lambda _: later.settle(Refused("the fork was given up")))
        return later

    async def _fork(self, path: Path, at_s: float, later: Later) -> None:
        ready = Path(tempfile.mkdtemp(prefix="understudy-fork-"), "ready.json")
        own = ("log", "fork", str(path), "--at", repr(at_s), "--no-open")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "understudy", *own, "--ready-file", str(ready)),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            preexec_fn=ends_with_this_process(),
        )
        self._forks.append(process)
        until = time.monotonic() + FORK_SECONDS
        while time.monotonic() < until and process.returncode is None:
            if endpoints := _listening(ready):
                page = endpoints.get("hmi", "")
                later.settle({"page": page, "endpoints": endpoints, "pid": process.pid})
                return
            await asyncio.sleep(LOOK_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        again = f"understudy log fork {path.name} --at {at_s:g} --check"
        later.settle(Refused(f"the fork did not start; see why with: {again}"))

    # ── files ──

    def _paths(self) -> list[Path]:
        found = set(self._folder.glob(f"*{ENDING}")) if self._folder.is_dir() else set()
        found |= {log.writer.path for log in running_logs(self._cell)}
        there = [path for path in found if path.is_file()]
        return sorted(there, key=lambda path: path.stat().st_mtime, reverse=True)

    def _find(self, name: str) -> Path | Refused:
        paths = {path.name: path for path in self._paths()}
        return paths.get(name) or Refused(str(unknown("recording", name, paths)))

    def _log(self, name: str) -> LogFile | Refused:
        path = self._find(name)
        if isinstance(path, Refused):
            return path
        try:
            if path not in self._open:
                self._open = {path: LogFile(path)}  # the one that is looked at
            self._open[path].look()
        except ConfigError as problem:
            return Refused(str(problem))
        return self._open[path]

    def _length(self, path: Path) -> float:
        if path in self._open:
            return seconds(self._open[path].span[1])
        try:
            return seconds(_last_time(path))
        except (ConfigError, OSError):
            return 0.0

    def _make_room(self) -> None:
        """Deletes the oldest recordings beyond the limit, but not those that are being written."""
        running = {log.writer.path for log in running_logs(self._cell)}
        total = 0
        for path in self._paths():
            total += path.stat().st_size
            if total > MOST_BYTES and path not in running:
                path.unlink(missing_ok=True)

    def _watch_size(self) -> None:
        if self._recording is None:
            return
        path = self._recording[0].writer.path
        self._make_room()
        if path.exists() and path.stat().st_size > MOST_BYTES:
            self.record_stop()
            return
        self._cell.loop.call_later(LOOK_SECONDS, self._watch_size)


_lengths: dict[tuple[Path, int], int] = {}


def _last_time(path: Path) -> int:
    """The last time of a finished recording; kept, since the list is asked for often."""
    key = path, path.stat().st_size
    if key not in _lengths:
        if len(_lengths) > MOST_MARKS:
            _lengths.clear()
        _lengths[key] = LogFile(path).span[1]
    return _lengths[key]


def _listening(ready: Path) -> dict[str, str]:
    """The endpoints in the ready file of a run, once all of them listen."""
    with contextlib.suppress(OSError, ValueError):
        facts = json.loads(ready.read_text())
        if not facts["starting"]:
            return dict(facts["endpoints"])
    return {}


def _row(event: Any) -> dict[str, Any]:
    return {
        "time_s": seconds(event.at),
        "endpoint": event.endpoint,
        "peer": event.peer,
        "kind": event.kind,
        "text": escape(event.data[:LONGEST_ROW]),
    }
