"""Runs: started, told of, cancelled; one works at a time, few wait, the latest are kept."""

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from understudy.errors import Refused

log = logging.getLogger(__name__)

# kind → the function that does it (`worker.Work`)
KINDS = {
    "reach": "understudy.app.background_reach:reach",
    "validate": "understudy.app.background_validate:validate",
}
MOST_WAITING = 8
MOST_KEPT = 16
LARGEST_RESULT = 16 * 1024 * 1024

RunState = Literal["waiting", "running", "done", "failed", "cancelled"]
OVER = ("done", "failed", "cancelled")


class Run(Struct):
    """One long query. ``seconds``: of wall time, so far or in all."""

    id: int
    kind: str
    state: RunState = "waiting"
    progress: float = 0.0
    error: str = ""
    seconds: float = 0.0


NOTHING = msgspec.Raw(b"")


class Said(Struct, frozen=True):
    """A line of the worker's."""

    progress: float | None = None
    result: msgspec.Raw = NOTHING
    failed: str | None = None


_decoder = msgspec.json.Decoder(Said)


class Runs:
    """Made and used on one event loop."""

    def __init__(self, kinds: Mapping[str, str], given: Mapping[str, Any]) -> None:
        """``given``: what every run is told besides its own parameters (which cell, for one)."""
        self._kinds = dict(kinds)
        self._given = dict(given)
        self._runs: dict[int, Run] = {}
        self._results: dict[int, msgspec.Raw] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._next = 1
        self._free = asyncio.Lock()

    def start(self, kind: str, parameters: Mapping[str, Any]) -> Run | Refused:
        if kind not in self._kinds:
            return Refused(f"there is no run {kind!r}; there are: {', '.join(self._kinds)}")
        if len(self._tasks) > MOST_WAITING:
            return Refused(f"{MOST_WAITING} runs wait already; cancel one, or wait")
        run = Run(self._next, kind)
        self._next += 1
        self._runs[run.id] = run
        work = self._work(run, {**parameters, **self._given})
        self._tasks[run.id] = asyncio.get_running_loop().create_task(work)
        self._forget_old()
        return run

    def all(self) -> list[Run]:
        return list(self._runs.values())

    def get(self, number: int) -> Run | Refused:
        known = ", ".join(map(str, self._runs)) or "none"
        return self._runs.get(number) or Refused(f"there is no run {number}; there are: {known}")

    def result(self, number: int) -> msgspec.Raw | None:
        """What came out, as JSON; None where nothing did, or not yet."""
        return self._results.get(number)

    def cancel(self, number: int) -> Run | Refused:
        run = self.get(number)
        if not isinstance(run, Refused) and run.state not in OVER:
            run.state = "cancelled"
            self._tasks[number].cancel()
        return run

    async def stop(self) -> None:
        for number in list(self._tasks):
            self.cancel(number)
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    # ── inside ──

    async def _work(self, run: Run, parameters: dict[str, Any]) -> None:
        try:
            async with self._free:
                self._end(run, await self._process(run, parameters))
        finally:
            self._tasks.pop(run.id, None)

    async def _process(self, run: Run, parameters: dict[str, Any]) -> Said:
        task = {"target": self._kinds[run.kind], "parameters": parameters}
        begun = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "understudy.operator.background.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LARGEST_RESULT,
        )
        run.state = "running"
        try:
            assert process.stdin is not None
            process.stdin.write(msgspec.json.encode(task) + b"\n")
            return await self._hear(run, process, begun)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()  # its pipes are closed too

    async def _hear(self, run: Run, process: asyncio.subprocess.Process, begun: float) -> Said:
        assert process.stdout is not None
        try:
            while line := await process.stdout.readline():
                said = _decoder.decode(line)
                run.seconds = time.monotonic() - begun
                if said.progress is None:
                    return said
                run.progress = said.progress
        except msgspec.DecodeError as problem:
            return Said(failed=f"its answer cannot be read: {problem}")
        except ValueError:
            return Said(failed=f"its answer is longer than {LARGEST_RESULT} bytes")
        return Said(failed="its process ended without an answer")

    def _end(self, run: Run, said: Said) -> None:
        if said.result == NOTHING:
            run.state, run.error = "failed", said.failed or ""
            log.info("run %d (%s) failed: %s", run.id, run.kind, run.error)
        else:
            run.state, run.progress = "done", 1.0
            self._results[run.id] = said.result

    def _forget_old(self) -> None:
        over = [run.id for run in self._runs.values() if run.state in OVER]
        for number in over[: max(0, len(self._runs) - MOST_KEPT)]:
            del self._runs[number]
            self._results.pop(number, None)
