"""Long work: beside the event loop in worker processes and threads, or on it in slices.

Long queries of clients run one at a time, a few wait, the latest results are kept. Work that a
command needs before it can answer (meshes, files, contacts between objects) has a line of its own:
a client that fills the queue with long queries does not delay it. `runs` lists both.
"""

import asyncio
import contextlib
import logging
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Mapping
from typing import IO, Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from understudy.errors import UNREADABLE, ConfigError, Refused
from understudy.operator.background_worker import Progress, WorkerLimits, worker_limits
from understudy.operator.table import command, query
from understudy.ports.hmi import BROKEN, Later
from understudy.wire.child_process import Process, worker_process

log = logging.getLogger(__name__)

KINDS = {
    "reach": "understudy.app.background:reach",
    "validate": "understudy.app.background:validate",
    "self_pairs": "understudy.app.background:self_pairs",
}
"""Kind of query → the function that a worker calls (`background_worker.Work`)."""
MESHES = "meshes"
FOR_COMMANDS = {MESHES: "understudy.app.meshes:meshes"}
"""The same for work that commands need; clients cannot start it."""
WORKER = "understudy.operator.background_worker"
MOST_WAITING = 8
"""Long queries that wait; as many pieces of work of commands may wait besides."""
MOST_KEPT = 16
LARGEST_RESULT = 16 * 1024 * 1024

RunState = Literal["waiting", "running", "done", "failed", "cancelled"]
OVER = ("done", "failed", "cancelled")


class BackgroundRun(Struct):
    """One long query or work of a command (``for_command``); ``seconds`` is the wall time that
    it has taken."""

    id: int
    kind: str
    state: RunState = "waiting"
    progress: float = 0.0
    error: str = ""
    seconds: float = 0.0
    for_command: bool = False


NOTHING = msgspec.Raw(b"")


class WorkerMessage(Struct, frozen=True):
    """One line from the worker."""

    progress: float | None = None
    result: msgspec.Raw = NOTHING
    failed: str | None = None
    exhausted: bool = False


_decoder = msgspec.json.Decoder(WorkerMessage)


ENDED = Refused("the cell has ended")
CANCELLED = Refused("cancelled: cancel_run")
SHARED_FILE = "shared"
"""Parameter with the descriptor of the file that the cell and the worker share."""


class BackgroundRuns:
    """The long work of a cell, on one event loop."""

    def __init__(
        self,
        kinds: Mapping[str, str],
        given: Mapping[str, Any],
        limits: WorkerLimits | None = None,
    ) -> None:
        """``given`` holds parameters of every query besides its own, such as the cell."""
        self._limits = limits or worker_limits()
        self._kinds = dict(kinds)
        self._given = dict(given)
        self._runs: dict[int, BackgroundRun] = {}
        self._results: dict[int, msgspec.Raw] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._next = 1
        self._free = asyncio.Lock()
        self._for_commands: dict[int, Later] = {}
        self._free_for_commands = asyncio.Lock()
        self._beside: set[asyncio.Task[None]] = set()
        self._stopped = False

    # ── long queries of clients ──

    @command()
    def start_run(self, kind: str, parameters: Mapping[str, Any] = {}) -> BackgroundRun | Refused:
        """Start a long query in a worker process."""
        if kind not in self._kinds:
            return Refused(f"there is no run {kind!r}; there are: {', '.join(self._kinds)}")
        if len(self._tasks) - len(self._for_commands) > MOST_WAITING:
            return Refused(f"{MOST_WAITING} runs wait already; cancel one, or wait")
        run = self._listed(kind)
        work = self._work(run, {**parameters, **self._given})
        self._tasks[run.id] = asyncio.get_running_loop().create_task(work)
        return run

    @query()
    def runs(self) -> list[BackgroundRun]:
        """List the long queries."""
        return list(self._runs.values())

    @query()
    def run_result(self, id: int) -> Any:
        """The result of a long query."""
        run = self.get(id)
        return run if isinstance(run, Refused) else {"run": run, "result": self.result(id)}

    @command()
    def cancel_run(self, id: int) -> BackgroundRun | Refused:
        """Cancel a long query."""
        run = self.get(id)
        if not isinstance(run, Refused) and run.state not in OVER:
            run.state = "cancelled"
            if id in self._tasks:  # slices look at the state themselves
                self._tasks[id].cancel()
        return run

    def get(self, number: int) -> BackgroundRun | Refused:
        known = ", ".join(map(str, self._runs)) or "none"
        return self._runs.get(number) or Refused(f"there is no run {number}; there are: {known}")

    def result(self, number: int) -> msgspec.Raw | None:
        """The result as JSON; None if there is none yet."""
        return self._results.get(number)

    # ── work that a command waits for ──

    def in_process(
        self, kind: str, parameters: Mapping[str, Any], shared: IO[bytes]
    ) -> Later | Refused:
        """Calls a function of `FOR_COMMANDS` in a worker process; settles the answer with its
        result as JSON, or with a refusal. ``shared`` is a file that both processes read and
        write."""

        async def work(run: BackgroundRun) -> Any:
            task = {**parameters, SHARED_FILE: shared.fileno()}
            message = await self._process(run, FOR_COMMANDS[kind], task, (shared.fileno(),))
            self._end(run, message)
            return self._results.pop(run.id, None) or Refused(run.error)

        return self._for_command(kind, work)

    def in_thread(self, kind: str, work: Callable[[Progress], Any]) -> Later | Refused:
        """Calls ``work`` in a thread; settles the answer with its outcome. The thread ends with
        the process, even if its work is not done."""

        async def begin(run: BackgroundRun) -> Any:
            run.state, begun = "running", time.monotonic()
            outcome = await _outcome_in_thread(work, lambda share: setattr(run, "progress", share))
            run.seconds = time.monotonic() - begun
            refused = isinstance(outcome, Refused)
            run.state, run.error = ("failed", outcome.reason) if refused else ("done", "")
            run.progress = run.progress if refused else 1.0
            return outcome

        return self._for_command(kind, begin)

    def beside(self, work: Callable[[], Any]) -> Later | Refused:
        """Calls short ``work`` in a thread at once, without a line in `runs`; settles the answer
        with its outcome. The caller bounds how much of it there is."""
        if self._stopped:
            return ENDED
        later = Later()

        async def begin() -> None:
            answer: Any = ENDED
            try:
                answer = await _outcome_in_thread(lambda _: work(), lambda share: None)
            finally:
                later.settle(answer)

        task = asyncio.get_running_loop().create_task(begin())
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return later

    def _for_command(
        self, kind: str, work: Callable[[BackgroundRun], Coroutine[Any, Any, Any]]
    ) -> Later | Refused:
        if self._stopped:
            return ENDED
        if len(self._for_commands) > MOST_WAITING:
            return Refused(f"{MOST_WAITING} long commands wait already: try again later")
        run, later = self._listed(kind, for_command=True), Later()
        self._for_commands[run.id] = later

        async def in_line() -> None:
            answer: Any = CANCELLED
            try:
                async with self._free_for_commands:
                    answer = await work(run)
            finally:
                del self._tasks[run.id], self._for_commands[run.id]
                later.settle(ENDED if self._stopped else answer)

        self._tasks[run.id] = asyncio.get_running_loop().create_task(in_line())
        return later

    def list_slices(self, kind: str) -> BackgroundRun:
        """Lists work of a command that its caller does in slices, until `unlist`."""
        run = self._listed(kind, for_command=True)
        run.state = "running"
        return run

    def unlist(self, run: BackgroundRun) -> None:
        self._runs.pop(run.id, None)

    async def stop(self) -> None:
        self._stopped = True
        for number in list(self._tasks):
            self.cancel_run(number)
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._tasks.values(), *self._beside, return_exceptions=True)

    # ── inside ──

    def _listed(self, kind: str, *, for_command: bool = False) -> BackgroundRun:
        run = BackgroundRun(self._next, kind, for_command=for_command)
        self._next += 1
        self._runs[run.id] = run
        self._forget_old()
        return run

    async def _work(self, run: BackgroundRun, parameters: dict[str, Any]) -> None:
        try:
            async with self._free:
                self._end(run, await self._process(run, self._kinds[run.kind], parameters))
        finally:
            self._tasks.pop(run.id, None)

    async def _process(
        self,
        run: BackgroundRun,
        target: str,
        parameters: dict[str, Any],
        descriptors: tuple[int, ...] = (),
    ) -> WorkerMessage:
        task = {"target": target, "parameters": parameters, "memory": self._limits.memory}
        begun = time.monotonic()
        async with worker_process(
            WORKER, longest_line=LARGEST_RESULT, descriptors=descriptors
        ) as process:
            run.state = "running"
            try:
                assert process.stdin is not None
                process.stdin.write(msgspec.json.encode(task) + b"\n")
                async with asyncio.timeout(self._limits.seconds):
                    return await self._read_messages(run, process, begun)
            except TimeoutError:
                return WorkerMessage(failed=self._limits.time_exceeded)

    async def _read_messages(
        self, run: BackgroundRun, process: Process, begun: float
    ) -> WorkerMessage:
        assert process.stdout is not None
        try:
            while line := await process.stdout.readline():
                message = _decoder.decode(line)
                run.seconds = time.monotonic() - begun
                if message.exhausted:
                    return WorkerMessage(failed=self._limits.memory_exceeded)
                if message.progress is None:
                    return message
                run.progress = message.progress
        except UNREADABLE as problem:
            return WorkerMessage(failed=f"its answer cannot be read: {problem}")
        except ValueError:
            return WorkerMessage(failed=f"its answer is longer than {LARGEST_RESULT} bytes")
        return WorkerMessage(failed=await self._why_it_ended(process))

    async def _why_it_ended(self, process: Process) -> str:
        """Why a process ended without an answer; compiled code aborts if it gets no memory."""
        code = await process.wait()
        if code in (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGKILL, -signal.SIGBUS):
            name = signal.Signals(-code).name
            return (
                f"its process was ended by {name}, perhaps because {self._limits.memory_exceeded}"
            )
        return "its process ended without an answer"

    def _end(self, run: BackgroundRun, message: WorkerMessage) -> None:
        if message.result == NOTHING:
            run.state, run.error = "failed", message.failed or ""
            log.info("run %d (%s) failed: %s", run.id, run.kind, run.error)
        else:
            run.state, run.progress = "done", 1.0
            self._results[run.id] = message.result

    def _forget_old(self) -> None:
        over = [run.id for run in self._runs.values() if run.state in OVER]
        for number in over[: max(0, len(self._runs) - MOST_KEPT)]:
            del self._runs[number]
            self._results.pop(number, None)


async def _outcome_in_thread(work: Callable[[Progress], Any], progress: Progress) -> Any:
    """The outcome of ``work``. An executor is not used: the end of the cell would wait for it."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Any] = loop.create_future()

    def settle(outcome: Any) -> None:
        if not ended.done():  # the command was cancelled
            ended.set_result(outcome)

    def run() -> None:
        try:
            outcome = work(progress)
        except ConfigError as problem:
            outcome = Refused(str(problem))
        except Exception:
            log.exception("long work failed")
            outcome = Refused("a bug; see the log", code=BROKEN)
        with contextlib.suppress(RuntimeError):  # the loop is closed: the cell has ended
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=run, daemon=True).start()
    return await ended


# ── slices ──────────────────────────────────────────────────────────────────────────────────────

SLICE_SECONDS = 0.01
MOST_AT_ONCE = 4
Outcome = TypeVar("Outcome")
Work = Generator[None, None, Outcome]
"""Long work: it yields wherever it may be interrupted, and returns the answer of the command."""
TOO_MUCH = Refused(f"{MOST_AT_ONCE} long commands are under way: try again when one has ended")


class Slices:
    """Runs long commands in slices on the event loop, so that a stop never waits behind one."""

    def __init__(self, listed: BackgroundRuns | None = None) -> None:
        """``listed``: where work is shown while it is under way."""
        self._listed = listed
        self._loop = asyncio.get_running_loop()
        self._under_way = 0
        self._stopped = False

    def do(self, work: Work[Outcome], kind: str = "") -> Outcome | Later | Refused:
        """The answer if the first slice gives it, else a `Later`. ``kind``: its name in the list of
        work; none: it is not listed."""
        if self._under_way >= MOST_AT_ONCE:
            return TOO_MUCH
        over, answer = _one_slice(work)
        if over:
            assert answer is not None
            return answer
        self._under_way += 1
        later = Later()
        run = self._listed.list_slices(kind) if self._listed and kind else None
        self._loop.call_soon(self._go_on, work, later, run)
        return later

    def stop(self) -> None:
        self._stopped = True

    def _go_on(self, work: Work[Outcome], later: Later, run: BackgroundRun | None) -> None:
        cancelled = run is not None and run.state == "cancelled"
        over, answer = (False, None) if cancelled else _one_slice(work)
        if not (over or cancelled or self._stopped):
            self._loop.call_soon(self._go_on, work, later, run)
            return
        self._under_way -= 1
        if self._listed is not None and run is not None:
            self._listed.unlist(run)
        later.settle(answer if over else CANCELLED if cancelled else ENDED)


def _one_slice(work: Work[Outcome]) -> tuple[bool, Outcome | None]:
    """Whether the work is over, and its answer."""
    deadline = time.monotonic() + SLICE_SECONDS
    try:
        while time.monotonic() < deadline:
            next(work)
    except StopIteration as end:
        return True, end.value
    return False, None
