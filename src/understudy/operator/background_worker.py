"""`python -m understudy.operator.background_worker`: the process of one long query.

In: a JSON line `{"target": "module:function", "parameters": {…}, "memory": bytes}`. Out, a JSON
line each: `{"progress": 0.3}` any number of times, then `{"result": …}`, `{"failed": "why"}`, or
`{"exhausted": true}` if it needed more than the memory it may have. When the input ends before
that, this process ends too: the cell no longer waits for the answer.

The limit of its memory is RLIMIT_DATA: writable memory of the process itself. Libraries reserve far
more address space than they use (numpy, numba, the stacks of threads), so a limit of the address
space would refuse work that fits; measured, RLIMIT_DATA counts about 90 MB more than is resident.
"""

import gc
import os
import resource
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, BinaryIO

import msgspec

from understudy.errors import ConfigError, Refused

NICENESS = 10
SMALLEST_STEP = 0.01
"""Smallest step of progress that is reported."""

Progress = Callable[[float], None]
"""Reports the share that is done, 0…1."""
Work = Callable[[dict[str, Any], Progress], Any]
"""The function of a query: parameters in; a value that msgspec can write, or Refused, out."""


def main() -> int:
    gc.set_threshold(100_000, 20, 20)  # what modules allocate stays: a tenth of the time to load
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints goes to stderr
    os.nice(NICENESS)
    task = msgspec.json.decode(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    limit_memory(task["memory"])
    _send(answers, _answer(answers, task["target"], task["parameters"]))
    return 0


def _answer(answers: BinaryIO, target: str, parameters: dict[str, Any]) -> bytes:
    reported = 0.0

    def progress(share: float) -> None:
        nonlocal reported
        if share >= reported + SMALLEST_STEP:
            reported = share
            _send(answers, msgspec.json.encode({"progress": share}))

    try:
        module, _, name = target.partition(":")
        work: Work = getattr(import_module(module), name)
        result = work(parameters, progress)
        return _encoded(result)
    except MemoryError:
        return b'{"exhausted":true}'
    except ConfigError as problem:
        return _encoded(Refused(str(problem)))
    except Exception as problem:  # noqa: BLE001 - a bug in a query is reported to the cell
        traceback.print_exc()
        return _encoded(Refused(f"{type(problem).__name__}: {problem}"))


def _encoded(result: Any) -> bytes:
    refused = isinstance(result, Refused)
    return msgspec.json.encode({"failed": result.reason} if refused else {"result": result})


def _send(answers: BinaryIO, answer: bytes) -> None:
    answers.write(answer + b"\n")
    answers.flush()


def _end_with_stdin() -> None:
    while os.read(0, 1024):  # not by sys.stdin: its lock would be missed at the end
        pass
    os._exit(1)


# ── limits ──────────────────────────────────────────────────────────────────────────────────────

MEMORY_VARIABLE = "UNDERSTUDY_WORKER_MEMORY_MB"
SECONDS_VARIABLE = "UNDERSTUDY_WORKER_SECONDS"
MB = 1 << 20
FEWEST_MB, MOST_MB = 512, 4096
"""Least limit that is allowed; largest one that is chosen by itself."""
DEFAULT_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """The memory of a worker in bytes, and the wall time of one piece of work."""

    memory: int
    seconds: float = DEFAULT_SECONDS

    @property
    def memory_exceeded(self) -> str:
        return (
            f"it needs more memory than a worker process may have: {self.memory // MB} MB "
            f"({MEMORY_VARIABLE} sets another limit)"
        )

    @property
    def time_exceeded(self) -> str:
        return (
            f"it took longer than a worker process may take: {self.seconds:g} s "
            f"({SECONDS_VARIABLE} sets another limit)"
        )


def worker_limits() -> WorkerLimits:
    """Half of the machine's memory, at most 4 GB, and an hour; or what the environment says."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    half_mb = max(min(pages * size // 2 // MB, MOST_MB), FEWEST_MB)
    memory_mb = _number(MEMORY_VARIABLE, half_mb, least=FEWEST_MB)
    return WorkerLimits(int(memory_mb) * MB, _number(SECONDS_VARIABLE, DEFAULT_SECONDS, least=1.0))


def _number(variable: str, default: float, *, least: float) -> float:
    given = os.environ.get(variable, "")
    if not given:
        return default
    try:
        value = float(given)
    except ValueError:
        value = 0.0
    if not least <= value < 1e9:
        raise ConfigError("not usable", key=variable, value=given, allowed=f"{least:g} or more")
    return value


def limit_memory(size: int) -> None:
    """Limits the memory of this process; a limit that is already lower stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    known = [each for each in (soft, hard) if each != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([size, *known]), hard))


if __name__ == "__main__":
    sys.exit(main())
