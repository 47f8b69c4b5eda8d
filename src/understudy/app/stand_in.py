"""A live cell in a thread of its own, for tests and scripts."""

import asyncio
import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from understudy.agenda import Rate
    from understudy.app.live import Live
    from understudy.ports import LineAnswers
    from understudy.ports.hmi import Later
    from understudy.ports.workpieces import WorkpieceReading
    from understudy.wire.chat import EventRecord
    from understudy.wire.journal import Entry, Finding, WireJournal

TIMEOUT_SECONDS = 60.0
STEP_SECONDS, LOOK_SECONDS = 0.1, 0.01
"""While a test waits for a request in lock-step: simulated time that passes at once, and wall time
between two steps."""
PATIENCE_SECONDS = 5.0
"""Wall time that a client has for a request where simulated time stands."""
LAST_SHOWN = 10
"""Messages of each wire in the report of a failed test."""
Found = TypeVar("Found")


class StandIn:
    """A live cell in a thread of its own; by default its time advances in steps.

    `rules`: with the scenario rules of the cell. `hmi`: open the doors that a page's process
    connects to; the process is not started. `files`: the folder for files that commands name, as
    `understudy run --files`. `robots`: number of mobile robots, as `understudy run --robots`.
    `strict`: a request that is unknown, not emulated or only accepted formally is an error of the
    test; None: as the cell file says.
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
        strict: bool | None = None,
    ) -> None:
        self._settings = (cell, seed, rules, rate, hmi, robots)
        self._strict = strict
        self._record: EventRecord | None = None
        self._facts: dict[str, str] = {}
        self._files = files
        self._loop = asyncio.new_event_loop()
        self._live: Live | None = None
        self._sockets: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._run, name=f"understudy {cell}", daemon=True)
        self._started: threading.Event = threading.Event()
        self._problem: Exception | None = None
        self.brings_faults = rules
        """Whether refusals are expected: by rules, or by `inject`."""

    @property
    def cell(self) -> str:
        """The file or name of the cell."""
        return self._settings[0]

    @property
    def ended(self) -> bool:
        """Whether the cell has ended by itself."""
        return self._running().finished.is_set()

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
        from understudy.wire.interface import host_and_port

        faces = [name for name in self.endpoints if name != "control"]
        name = endpoint or faces[0]
        if name not in self.endpoints or (not endpoint and len(faces) != 1):
            raise ValueError(f"endpoint {endpoint!r}; there are: {', '.join(self.endpoints)}")
        return host_and_port(self.endpoints[name])

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
        decoders = self._running().journal.decoders
        able = {name: each.line_answers for name, each in decoders.items() if each.line_answers}
        name = endpoint or next(iter(able), "")
        if name not in able or (not endpoint and len(able) > 1):
            there = ", ".join(able) or "none in this cell"
            raise ValueError(f"ask needs an endpoint that answers lines of text: {there}")
        return name, able[name]

    @property
    def refused(self) -> list[str]:
        """What the robots have refused up to now: answers of text faces, and alarms of robots that
        answer no lines."""
        return [str(each) for each in self.findings() if not each.unexpected] + self.alarms()

    @property
    def strict(self) -> bool:
        """Whether unexpected requests are errors of a test."""
        asked = self._strict
        return self._running().config.head.strict if asked is None else asked

    def alarms(self) -> list[str]:
        """Alarms of the robots that refuse by an alarm, up to now."""
        live = self._running()
        silent = {
            robot
            for robot, each in live.config.robots.items()
            if each.faces
            and all(
                decoder.alarms_refuse
                for endpoint, decoder in live.journal.decoders.items()
                if endpoint.startswith(f"{robot}.")
            )
        }
        if not silent or live.finished.is_set():
            return []
        events = self.do("events")["events"]
        alarms = [each for each in events if each.kind == "alarm" and each.robot in silent]
        return [f"{each.robot}: {each.text}" for each in alarms]

    # ── the journal ──

    def journal(self, endpoint: str = "", since: int = 0) -> "list[Entry]":
        """Requests and answers on the wires, decoded: the last 2000 each of every endpoint."""
        return self._read_journal(lambda journal: journal.entries(endpoint, since))

    def findings(self, since: int = 0) -> "list[Finding]":
        """Requests after a number that are unknown or not emulated, and refusals."""
        found = self._read_journal(lambda journal: journal.findings())
        return [each for each in found if each.entry.number > since]

    @property
    def last_message(self) -> int:
        """Number of the last message in the journal."""
        return self._read_journal(lambda journal: journal.last)

    def received(
        self,
        name: str = "",
        *,
        times: int | None = None,
        within_s: float = 0.0,
        endpoint: str = "",
        peer: str = "",
        **fields: Any,
    ) -> "list[Entry]":
        """The requests of this name, with these values of fields; NotReceivedError, an
        AssertionError, if there is none, or not this number of ``times``.

        ``within_s``: how long to wait for them, in simulated seconds. Where time runs only for the
        robot (`step`, `max`), the call lets it pass meanwhile, and the client has at least
        `PATIENCE_SECONDS` of wall time.
        """
        from understudy.wire.journal import NotReceivedError, Wanted

        wanted = Wanted(name, endpoint, peer, fields)
        came = threading.Event()
        waits = self._waits(came, within_s) if within_s > 0.0 else iter(())

        def look(journal: "WireJournal") -> "list[Entry]":
            journal.on_note = came.set if within_s > 0.0 else None
            return journal.received(wanted, times)

        try:
            while True:
                try:
                    return self._read_journal(look)
                except NotReceivedError:
                    if next(waits, None) is None:
                        raise
        finally:
            self._read_journal(lambda journal: setattr(journal, "on_note", None))

    def _waits(self, came: threading.Event, within_s: float) -> Iterator[bool]:
        """Lets time pass until something has passed on a wire, again and again; ends with the
        simulated time ``within_s``."""
        live, end = self._running(), self.now + within_s
        patience = time.monotonic() + PATIENCE_SECONDS
        while not live.finished.is_set():
            left, patient = end - self.now, time.monotonic() < patience
            runs = not isinstance(live.rate, str) and live.rate > 0.0
            if not patient and (left <= 0.0 or live.rate == 0.0):
                return
            if runs and left <= 0.0:
                return
            if came.wait(LOOK_SECONDS):
                came.clear()
                yield True
            elif left > 0.0 and isinstance(live.rate, str):
                self.forward(min(STEP_SECONDS, left))
                yield True

    def verify_no_unexpected(self, since: int = 0) -> None:
        """AssertionError if a request was unknown, not emulated, only accepted formally, or
        refused."""
        if found := [*map(str, self.findings(since)), *self.alarms()]:
            raise AssertionError("\n  ".join(["the robot has not expected:", *found]))

    # ── evidence of a failed test ──

    def last_lines(self) -> list[str]:
        """Seed and time of the run, and the last messages of each wire, as text."""
        cell, _, rules, rate, *_ = self._settings
        live = self._running()
        head = f"cell {cell}, seed {live.config.head.seed}, rules {'on' if rules else 'off'}"
        lines = [f"{head}, rate {rate}, {self.now:g} s of simulated time"]
        entries = self.journal()
        for endpoint in live.journal.decoders:
            own = [each for each in entries if each.endpoint == endpoint]
            count = f"the last {LAST_SHOWN} of {len(own)} messages"
            lines.append(f"{endpoint}: {count if len(own) > LAST_SHOWN else 'all messages'}")
            lines += [f"  {each}" for each in own[-LAST_SHOWN:]] or ["  none"]
        return lines

    def write_transcript(self, file: Path) -> bool:
        """Writes the transcript of all wires since the start, for `understudy replay`; False if the
        run was too long to be recorded whole."""
        record, facts = self._record, self._facts
        assert record is not None
        text = self._read_journal(lambda journal: record.written(facts))
        file.write_text(text, encoding="utf-8")
        return record.whole

    def write_snapshot(self, file: Path) -> None:
        """Writes the state of the cell, for the command `restore`."""
        from understudy.simulation.cell import write_snapshot

        file.write_bytes(write_snapshot(self.do("snapshot")["snapshot"]))

    def _read_journal(self, action: "Callable[[WireJournal], Found]") -> Found:
        live = self._running()
        if live.finished.is_set():
            self._thread.join(TIMEOUT_SECONDS)
            return action(live.journal)
        found: Found = self._call(lambda live: action(live.journal))
        return found

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
        from understudy.app.live import Live, Options, replay_facts, run_of
        from understudy.config import load_config
        from understudy.config.shards import with_robots
        from understudy.wire.chat import EventRecord

        cell, seed, rules, rate, hmi, robots = self._settings
        config = load_config(cell, seed=seed)
        if robots is not None:
            config = with_robots(config, robots)
        if not rules:
            config = config.without_rules()
        files = None if self._files is None else Path(self._files)
        run = run_of(config, rate)
        self._record = EventRecord()
        self._facts = replay_facts(_found_anywhere(cell), config, run)
        self._facts |= {"rules": "on" if rules else "off"}
        self._facts |= {} if robots is None else {"robots": str(robots)}
        options = Options(
            rate,
            ephemeral=True,
            hmi=hmi,
            files=files,
            note=self._record.note,
            run=run,
            answers_inside=True,
            watching=True,
        )
        live = Live(config, options)
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


def _found_anywhere(cell: str) -> str:
    """The path of a cell file as seen from any folder; the name of a shipped cell."""
    file = Path(cell)
    return str(file.absolute()) if file.is_file() else cell


def _text_line(stream: Any) -> str | None:
    """The next line; None if the connection is closed."""
    data = bytes(stream.readline())
    return data.decode().rstrip("\r\n") if data else None
