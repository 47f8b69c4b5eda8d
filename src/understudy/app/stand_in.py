"""A live cell in a thread of its own, for tests and scripts."""

import asyncio
import contextlib
import queue
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.agenda import Rate
    from understudy.app.live import Live
    from understudy.config import CellConfig
    from understudy.ports import LineAnswers
    from understudy.ports.hmi import Later
    from understudy.ports.workpieces import WorkpieceReading
    from understudy.wire.connection import Event

TIMEOUT_SECONDS = 60.0
LONGEST_SHOWN = 200
"""Bytes of a client that are kept, to show the line that was refused."""


class StandIn:
    """A live cell in a thread of its own; by default its time advances in steps.

    `rules`: with the scenario rules of the cell. `hmi`: open the doors that a page's process
    connects to; the process is not started. `files`: the folder for files that commands name, as
    `understudy run --files`. `robots`: number of mobile robots, as `understudy run --robots`.
    """

    def __init__(
        self,
        cell: str,
        *,
        seed: int | None = None,
        rules: bool = False,
        rate: "Rate" = "step",
        hmi: bool = False,
        files: Path | str | None = None,
        robots: int | None = None,
    ) -> None:
        self._settings = (cell, seed, rules, rate, hmi, robots)
        self._files = files
        self._loop = asyncio.new_event_loop()
        self._live: Live | None = None
        self._sockets: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._run, name=f"understudy {cell}", daemon=True)
        self._started: threading.Event = threading.Event()
        self._problem: Exception | None = None
        self._refusals = Refusals()
        self.brings_faults = rules
        """Whether refusals are expected: by rules, or by `inject`."""

    # ── addresses ──

    @property
    def endpoints(self) -> Mapping[str, str]:
        return self._running().endpoints

    @property
    def secret(self) -> str:
        """What clients of the control endpoint and the state socket must send."""
        return self._running().secret

    def address(self, endpoint: str = "") -> tuple[str, int]:
        """Host and port of an endpoint; of the cell's only face if none is named."""
        faces = [name for name in self.endpoints if name != "control"]
        name = endpoint or faces[0]
        if name not in self.endpoints or (not endpoint and len(faces) != 1):
            raise ValueError(f"endpoint {endpoint!r}; there are: {', '.join(self.endpoints)}")
        host, _, port = self.endpoints[name].rpartition("://")[2].rpartition(":")
        return host.strip("[]"), int(port)

    @property
    def host(self) -> str:
        return self.address()[0]

    @property
    def port(self) -> int:
        return self.address()[1]

    # ── in a test ──

    @property
    def now(self) -> float:
        """Simulated seconds since the cell started."""
        return float(self._call(lambda live: live.now))

    def forward(self, seconds: float) -> None:
        """Lets simulated seconds pass."""
        later = self._call(lambda live: live.advance(seconds))
        if later is not None:
            self._wait_for(later)

    def do(self, command: str, **parameters: Any) -> Any:
        """Runs a command of the control endpoint; RuntimeError if it is refused."""
        from understudy.errors import Refused
        from understudy.ports.hmi import Later

        result = self._call(lambda live: live.commands.call(command, parameters, "operator"))
        if isinstance(result, Later):
            result = self._wait_for(result)
        if isinstance(result, Refused):
            raise RuntimeError(result.reason)
        return result

    def gripper(self, name: str = "") -> Any:
        """A gripper with calls that wait: `grip()`, `release()`; the only one if none is named."""
        from understudy.registry import module_of

        return module_of("devices", "gripper").for_tests(self, name)

    def parts(self) -> "dict[str, WorkpieceReading]":
        """The parts of the cell by name, as they truly are."""
        status = self.on_component("parts", lambda parts, now: parts.status(now))
        return {part.name: part for part in status.parts}

    def on_component(self, name: str, action: Callable[[Any, int], Any]) -> Any:
        """Calls ``action(part, now)`` in the thread of the cell."""
        return self._call(lambda live: live.on_component(name, action))

    def _wait_for(self, later: "Later") -> Any:
        """The answer; TimeoutError if there is none and simulated time stands."""
        answers: queue.Queue[Any] = queue.Queue()
        self._call(lambda live: later.then(answers.put))
        before = -1.0
        while True:
            try:
                return answers.get(timeout=TIMEOUT_SECONDS)
            except queue.Empty:
                if (now := self.now) == before:
                    raise TimeoutError(f"no answer; simulated time stands at {now:g} s") from None
                before = now

    def inject(self, fault: str, on: str = "", **parameters: float) -> None:
        """Injects a fault; into the cell's first robot if none is named."""
        self.brings_faults = True
        robot = on or next(iter(self._running().config.robots))
        self.do("inject", fault=fault, on=robot, parameters=parameters)

    def ask(self, line: str, endpoint: str = "") -> str:
        """Sends a line to a text face and returns the answer; the connection is kept open.

        An answer of several lines (grblHAL: up to `ok` or `error:n`) has line breaks in it.
        """
        name, talk = self._line_answers(endpoint)
        if name not in self._sockets:
            raw = socket.create_connection(self.address(name), TIMEOUT_SECONDS)
            self._sockets[name] = raw.makefile("rwb", buffering=0)
            raw.close()
            for _ in range(talk.greeting_lines):
                self._sockets[name].readline()
        stream = self._sockets[name]
        stream.write(line.encode() + b"\n")
        deadline = time.monotonic() + TIMEOUT_SECONDS
        lines = [_text_line(stream)]
        while talk.ends and lines[-1] is not None and not lines[-1].startswith(talk.ends):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name}: no end of the answer to {line!r}")
            lines.append(_text_line(stream))
        return "\n".join(line for line in lines if line is not None)

    def _line_answers(self, endpoint: str) -> "tuple[str, LineAnswers]":
        """A text face and how it answers lines; of the cell's only one if none is named."""
        faces = _line_answers(self._running().config)
        able = {name: talk for name, talk in faces.items() if talk is not None}
        name = endpoint or next(iter(able), "")
        if name not in able or (not endpoint and len(able) > 1):
            there = ", ".join(able) or "none in this cell"
            raise ValueError(f"ask needs an endpoint that answers lines of text: {there}")
        return name, able[name]

    @property
    def refused(self) -> list[str]:
        """What the robots have refused up to now: answers of text faces, and alarms of robots that
        answer no lines."""
        return self._refusals.lines + self._alarms()

    def _alarms(self) -> list[str]:
        live = self._running()
        faces = _line_answers(live.config)
        silent = {name.partition(".")[0] for name, talk in faces.items() if talk is None}
        silent -= {name.partition(".")[0] for name, talk in faces.items() if talk is not None}
        if not silent or live.finished.is_set():
            return []
        events = self.do("events")["events"]
        alarms = [each for each in events if each.kind == "alarm" and each.robot in silent]
        return [f"{each.robot}: {each.text}" for each in alarms]

    # ── start and stop ──

    def __enter__(self) -> "StandIn":
        self._compile_kernels()
        self._thread.start()
        if not self._started.wait(TIMEOUT_SECONDS):
            raise TimeoutError("the cell did not start")
        if self._problem is not None:
            raise self._problem
        return self

    def __exit__(self, *exception: object) -> None:
        for stream in self._sockets.values():
            stream.close()
        if self._live is not None:
            with contextlib.suppress(RuntimeError):  # the cell may have ended by itself
                self._loop.call_soon_threadsafe(self._live.finished.set)
        self._thread.join(TIMEOUT_SECONDS)

    def _compile_kernels(self) -> None:
        """Compiles what the cell needs and the cache does not have, with progress on stderr."""
        from understudy.app.kernels import ProgressLine, compile_missing, needed
        from understudy.config import load_config
        from understudy.errors import ConfigError

        with contextlib.suppress(ConfigError):  # the cell itself will say it
            compile_missing(needed(load_config(self._settings[0])), line := ProgressLine())
            line.clear()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except Exception as problem:  # noqa: BLE001 - raised in the thread that waits for the start
            self._problem = problem
        finally:
            self._loop.close()
            self._started.set()

    async def _serve(self) -> None:
        from understudy.app.live import Live, Options
        from understudy.config import load_config
        from understudy.config.shards import with_robots

        cell, seed, rules, rate, hmi, robots = self._settings
        config = load_config(cell, seed=seed)
        if robots is not None:
            config = with_robots(config, robots)
        files = None if self._files is None else Path(self._files)
        self._refusals.watch(_line_answers(config))
        options = Options(
            rate,
            ephemeral=True,
            hmi=hmi,
            files=files,
            answers_inside=True,
            note=self._refusals.note,
        )
        live = Live(config if rules else config.without_rules(), options)
        await live.start()
        self._live = live
        self._started.set()
        await live.finished.wait()
        await live.stop()

    def _running(self) -> "Live":
        if self._live is None:
            raise RuntimeError("the cell does not run: use it in a `with` statement")
        return self._live

    def _call(self, action: Callable[["Live"], Any]) -> Any:
        live = self._running()

        async def do() -> Any:
            return action(live)

        return asyncio.run_coroutine_threadsafe(do(), self._loop).result(TIMEOUT_SECONDS)


class Refusals:
    """The lines by which text faces have refused something, each with the line before it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._patterns: dict[str, re.Pattern[str]] = {}
        self._asked: dict[str, str] = {}

    def watch(self, faces: "Mapping[str, LineAnswers | None]") -> None:
        self._patterns = {
            name: re.compile(talk.refusal) for name, talk in faces.items() if talk and talk.refusal
        }

    def note(self, event: "Event") -> None:
        """Sees all bytes of the cell, in its thread."""
        pattern = self._patterns.get(event.endpoint)
        if pattern is None:
            return
        text, asked = event.data.decode("utf-8", "replace"), self._asked.get(event.endpoint, "")
        if event.kind == ">":
            self._asked[event.endpoint] = (asked + text)[-LONGEST_SHOWN:]
        elif event.kind == "<":
            line = (asked.split("\n")[-2:] or [""])[0].strip()
            found = filter(pattern.match, text.splitlines())
            self.lines += [f"{event.endpoint}: {line} → {answer}" for answer in found]


def _line_answers(config: "CellConfig") -> "dict[str, LineAnswers | None]":
    """How the faces of the robots answer lines, by endpoint; None: they answer none."""
    from understudy.ports import LineAnswers
    from understudy.registry import module_of

    return {
        f"{robot}.{name}": getattr(module_of("faces", face.kind), "LINE_ANSWERS", LineAnswers())
        for robot, each in config.robots.items()
        for name, face in each.faces.items()
    }


def _text_line(stream: Any) -> str | None:
    """The next line; None if the connection is closed."""
    data = bytes(stream.readline())
    return data.decode().rstrip("\r\n") if data else None
