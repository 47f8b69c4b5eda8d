"""A process that lives with a cell: it is started again when it dies, and ends with the cell."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

log = logging.getLogger(__name__)

CLOSING_SECONDS = 1.0
FIRST_DELAY_SECONDS = 0.25
HEALTHY_SECONDS = 30.0
"""A process that ran for this long has started properly: the next restart delay is the first."""


@dataclass(frozen=True)
class Program:
    """`title`: in messages, as `the page's process`. `command`: asked before every start. `env`:
    its environment, None for that of the cell. `descriptors`: of open files that it inherits.
    `longest_delay`: seconds before it is started again, at most. `ended`: called with the exit code
    of a process that has ended by itself."""

    title: str
    command: Callable[[], Sequence[str]]
    env: Mapping[str, str] | None = None
    descriptors: tuple[int, ...] = ()
    longest_delay: float = 15.0
    ended: Callable[[int], None] = lambda code: None


class ChildProcess:
    """Supervises the process after `start`. ``read_line``: called with each line of its output.

    The process ends when its standard input is closed, and so it ends with the cell, whatever
    happens to the cell.
    """

    def __init__(self, program: Program, read_line: Callable[[str], None]) -> None:
        self._program = program
        self._read_line = read_line
        self._process: asyncio.subprocess.Process | None = None
        self._supervisor: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        self._supervisor = asyncio.get_running_loop().create_task(self._supervise())

    async def stop(self) -> int | None:
        """Ends the process, by force after a timeout; returns its exit code."""
        if self._supervisor is not None:
            self._supervisor.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._supervisor
        return await self._end()

    async def _supervise(self) -> None:
        program, delay = self._program, FIRST_DELAY_SECONDS
        while True:
            begun = time.monotonic()
            code = await self._run_once()
            program.ended(code)
            if time.monotonic() - begun > HEALTHY_SECONDS:
                delay = FIRST_DELAY_SECONDS
            log.warning("%s ended (%s); it is started again in %g s", program.title, code, delay)
            await asyncio.sleep(delay)
            delay = min(2.0 * delay, program.longest_delay)

    async def _run_once(self) -> int:
        self._process = await asyncio.create_subprocess_exec(
            *self._program.command(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=self._program.descriptors,
            env=self._program.env,
            # Ctrl-C in a terminal goes to the whole group; this process ends with the cell instead.
            start_new_session=True,
        )
        output = self._process.stdout
        assert output is not None
        while line := await output.readline():
            self._read_line(line.decode("utf-8", "replace").rstrip())
        return await self._process.wait()

    async def _end(self) -> int | None:
        process = self._process
        if process is None or process.returncode is not None:
            return None
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await process.communicate(b"")  # closes its input
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()
        return process.returncode
