"""`python -m understudy.operator.background_worker`: the process of one long query.

In: a JSON line `{"target": "module:function", "parameters": {…}, "memory": bytes}`. Out, a JSON
line each: `{"progress": 0.3}` any number of times, then `{"result": …}`, `{"failed": "why"}`, or
`{"exhausted": true}` if it needed more than the memory it may have. When the input ends before
that, this process ends too: the cell no longer waits for the answer.
"""

import gc
import os
import sys
import threading
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

import msgspec

from understudy.errors import ConfigError, Refused
from understudy.operator.worker_limits import limit_memory

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


if __name__ == "__main__":
    sys.exit(main())
