"""The end of a cell by signals: the first one closes it, a second one ends the process at once."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from understudy.app import guard
from understudy.app.guard import ENDING, SAME_REQUEST_S

log = logging.getLogger(__name__)

SIGNAL_GRACE_S = 1.0
"""CPU seconds that the event loop has to react to a signal before the signal interrupts it: a slow
machine alone interrupts nothing."""


class EndOnSignals:
    """Ends a cell on SIGINT, SIGTERM and SIGHUP; `came` holds the numbers of the signals.

    A signal that the loop does not handle in time (a kernel is being compiled) interrupts the
    running code. A second one removes the files and ends the process, whatever it does: if python
    cannot run meanwhile, the guard process does it.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self.came: list[int] = []
        self._files = [str(file.absolute()) for file in files]
        self._first = 0.0
        self._end: Callable[[], object] = lambda: None
        self._loop = asyncio.get_running_loop()

    def install(self, end: Callable[[], object]) -> Callable[[], None]:
        """From now on the first signal calls ``end`` on the event loop; the returned function says
        that the cell has ended: what follows is not interrupted."""
        self._end = end
        signal.signal(signal.SIGPROF, signal.default_int_handler)
        for number in ENDING:
            if not _is_ignored(number):
                signal.signal(number, self._receive)
        _start_guard(self._files)
        return _interrupt_no_more

    def _receive(self, number: int, frame: object) -> None:
        now = time.monotonic()
        if not self.came and not self._loop.is_running():
            self._first = now  # the process is ending already
        elif not self.came:
            self._first = now
            signal.setitimer(signal.ITIMER_PROF, SIGNAL_GRACE_S)
            self._loop.call_soon_threadsafe(self._handle)
        elif now - self._first > SAME_REQUEST_S:
            for file in self._files:
                guard.remove(file, os.getpid())
            os._exit(128 + number)
        self.came.append(number)

    def _handle(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        self._end()


@contextlib.contextmanager
def signals_as_ctrl_c() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP raise KeyboardInterrupt, as SIGINT does: a command that has set a
    robot in motion can stop it before it ends."""
    before = {
        number: signal.signal(number, signal.default_int_handler)
        for number in ENDING
        if not _is_ignored(number)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt_no_more() -> None:
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    signal.signal(signal.SIGPROF, signal.SIG_IGN)


def _is_ignored(number: int) -> bool:
    """Whether SIGHUP is ignored: `nohup` asks for it."""
    return number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN


def _start_guard(files: Sequence[str]) -> None:
    """Starts the guard process; it ends when this process does. Without it, a second signal waits
    for the end of the running call."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    nothing = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    actions = [(os.POSIX_SPAWN_DUP2, reader, 0), nothing, (os.POSIX_SPAWN_DUP2, 1, 2)]
    command = [sys.executable, "-I", "-S", guard.__file__, str(os.getpid()), *files]
    try:
        os.posix_spawn(sys.executable, command, os.environ, file_actions=actions, setsid=True)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    except (OSError, NotImplementedError) as problem:
        log.warning("the guard process is not started: %s", problem)
    finally:
        os.close(reader)
