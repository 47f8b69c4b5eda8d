"""Processes that a cell starts: kept running, heard, and ended with the cell.

- `ChildProcess` supervises a program that lives as long as the cell (the page, a vision process, a
  NATS server of its own): it is started again when it ends, after a delay that is doubled each
  time.
- `worker_process` is a process for one piece of work.

A process follows the end of the cell, whatever ends the cell: our own ones end when their standard
input is closed; a foreign one is ended by the kernel (`ends_with_this_process`; on Linux only).
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.errors import ConfigError
from understudy.wire.task_shutdown import end_tasks

log = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1

Process = asyncio.subprocess.Process


@dataclass(frozen=True)
class Program:
    """A program and how it is kept running.

    `title` names it in messages, for example `the page's process`. `command` is asked before every
    start. `env` is its environment, None for that of the cell. It inherits the open files of
    `descriptors`.

    `read_line` is called with each line of its output; it ends when its input is closed. Without
    `read_line` the program is a foreign one: its output goes to the file `output`, and it is ended
    by SIGTERM. `until_ready` returns when a process of it can be used.

    It is started again after `first_delay` seconds, then after twice as many, up to
    `longest_delay`; after `healthy_seconds` it has started properly, and the next delay is the
    first. It is killed if it has not ended `stop_seconds` after the request. `ended` is called when
    a process of it has ended by itself.
    """

    title: str
    command: Callable[[], Sequence[str]]
    env: Mapping[str, str] | None = None
    descriptors: tuple[int, ...] = ()
    read_line: Callable[[str], None] | None = None
    output: Path | None = None
    until_ready: Callable[[Process], Awaitable[None]] | None = None
    first_delay: float = 0.25
    longest_delay: float = 15.0
    healthy_seconds: float = 30.0
    stop_seconds: float = 1.0
    ended: Callable[[], None] = lambda: None


class ChildProcess:
    """A process of a program; after `supervise` there is always one, until `stop`."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._process: Process | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self.starts = 0
        """How often the program was started and got ready."""

    @property
    def pid(self) -> int | None:
        """Number of the process that runs now."""
        return self._process.pid if self._process and self._process.returncode is None else None

    def runs(self) -> bool:
        """Whether the process runs at this instant, also where its end was not noticed yet. May be
        called from any thread."""
        pid = self.pid
        if pid is None or not hasattr(os, "waitid"):
            return pid is not None
        try:
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            return False

    async def start(self) -> None:
        """Starts the process and waits until it is ready; if that fails, it is ended."""
        program = self._program
        try:
            self._process = await self._launch()
            if program.until_ready is not None:
                await program.until_ready(self._process)
        except BaseException:
            await self._end()
            raise
        self.starts += 1

    def supervise(self) -> None:
        """From now on the program is started when no process of it runs."""
        self._supervisor = asyncio.get_running_loop().create_task(self._supervise())

    async def stop(self) -> int | None:
        """Ends the process, by force after a timeout; returns its exit code."""
        if self._supervisor is not None:
            await end_tasks(self._supervisor)
        return await self._end()

    async def _supervise(self) -> None:
        program, delay = self._program, self._program.first_delay
        while True:
            begun = time.monotonic()
            try:
                if self.pid is None:
                    await self.start()
                assert self._process is not None
                code = await self._until_ended(self._process)
                program.ended()
                if time.monotonic() - begun > program.healthy_seconds:
                    delay = program.first_delay
                how = how_it_ended(code)
                log.warning("%s ended (%s); it is started again in %g s", program.title, how, delay)
            except (ConfigError, OSError) as problem:
                log.warning("%s; next attempt in %g s", problem, delay)
            await asyncio.sleep(delay)
            delay = min(2.0 * delay, program.longest_delay)

    async def _launch(self) -> Process:
        program = self._program
        # Ctrl-C in a terminal goes to the whole group; this process ends with the cell instead.
        options: dict[str, Any] = {"start_new_session": True, "env": program.env}
        command = program.command()
        if program.output is None:
            pipe = asyncio.subprocess.PIPE
            return await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, pass_fds=program.descriptors, **options
            )
        with program.output.open("wb") as output:
            return await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=program.descriptors,
                preexec_fn=ends_with_this_process(),
                **options,
            )

    async def _until_ended(self, process: Process) -> int:
        if process.stdout is not None and self._program.read_line is not None:
            while line := await process.stdout.readline():
                self._program.read_line(line.decode("utf-8", "replace").rstrip())
        return await process.wait()

    async def _end(self) -> int | None:
        process = self._process
        if process is None or process.returncode is not None:
            return None
        if process.stdin is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        try:
            async with asyncio.timeout(self._program.stop_seconds):
                await process.communicate(b"" if process.stdin else None)  # closes its input
        except TimeoutError:
            await _kill(process)
        return process.returncode


@contextlib.asynccontextmanager
async def worker_process(
    module: str, *, longest_line: int, descriptors: tuple[int, ...] = ()
) -> AsyncIterator[Process]:
    """A Python module as a process with pipes for its input and output; it is killed at the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=longest_line,
        pass_fds=descriptors,
    )
    try:
        yield process
    finally:
        await _kill(process)


async def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.communicate()  # closes its pipes


def how_it_ended(code: int) -> str:
    """An exit code in words."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


def ends_with_this_process() -> Callable[[], None] | None:
    """What a child calls before it becomes its program: the kernel kills it when we end."""
    if sys.platform != "linux":
        return None
    import ctypes

    parent, libc = os.getpid(), ctypes.CDLL(None, use_errno=True)

    def arrange() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended meanwhile
            os.kill(os.getpid(), signal.SIGKILL)

    return arrange
