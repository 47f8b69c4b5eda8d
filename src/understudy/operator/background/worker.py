"""`python -m understudy.operator.background.worker`: one run.

In: a JSON line `{"target": "module:function", "parameters": {…}}`. Out, a JSON line each:
`{"progress": 0.3}` any number of times, at last `{"result": …}` or `{"failed": "why"}`. When the
input ends before that, so does this process: nobody waits for the answer any more.
"""

import os
import sys
import threading
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

import msgspec

from understudy.errors import ConfigError, Refused

NICENESS = 10
SMALLEST_STEP = 0.01
"""Progress is told in steps that somebody could see."""

Progress = Callable[[float], None]
"""Told the share that is done, 0…1."""
Work = Callable[[dict[str, Any], Progress], Any]
"""What a kind of run is: parameters in, a value that msgspec can write or a Refused out."""


def main() -> int:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is not taken for an answer
    os.nice(NICENESS)
    task = msgspec.json.decode(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    _say(answers, _answer(answers, task["target"], task["parameters"]))
    return 0


def _answer(answers: BinaryIO, target: str, parameters: dict[str, Any]) -> dict[str, Any]:
    told = 0.0

    def progress(share: float) -> None:
        nonlocal told
        if share >= told + SMALLEST_STEP:
            told = share
            _say(answers, {"progress": share})

    try:
        module, _, name = target.partition(":")
        work: Work = getattr(import_module(module), name)
        result = work(parameters, progress)
    except ConfigError as problem:
        return {"failed": str(problem)}
    except Exception as problem:  # noqa: BLE001 - a bug in a run is told to who waits for it
        traceback.print_exc()
        return {"failed": f"{type(problem).__name__}: {problem}"}
    return {"failed": result.reason} if isinstance(result, Refused) else {"result": result}


def _say(answers: BinaryIO, answer: dict[str, Any]) -> None:
    answers.write(msgspec.json.encode(answer) + b"\n")
    answers.flush()


def _end_with_stdin() -> None:
    while os.read(0, 1024):  # not by sys.stdin: its lock would be missed at the end
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
