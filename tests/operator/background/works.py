"""Kinds of background runs for tests."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from understudy.errors import ConfigError, Refused

Progress = Callable[[float], None]


def echo(parameters: dict[str, Any], progress: Progress) -> Any:
    print("this is no answer")
    progress(0.5)
    return parameters


def refuse(parameters: dict[str, Any], progress: Progress) -> Refused:
    return Refused("not with me")


def misread(parameters: dict[str, Any], progress: Progress) -> None:
    raise ConfigError("no such key", key="tea")


def stumble(parameters: dict[str, Any], progress: Progress) -> None:
    raise ZeroDivisionError("by nothing")


def vanish(parameters: dict[str, Any], progress: Progress) -> None:
    os._exit(3)


def babble(parameters: dict[str, Any], progress: Progress) -> str:
    return "x" * int(parameters["bytes"])


def swallow(parameters: dict[str, Any], progress: Progress) -> int:
    """Takes as much memory as it is told to, a few MB at a time."""
    taken = []
    for k in range(int(parameters["megabytes"]) // 8):
        taken.append(np.ones(1 << 20))
        progress(8 * k / parameters["megabytes"])
    return len(taken)


def give_up(parameters: dict[str, Any], progress: Progress) -> None:
    os.abort()  # as compiled code does if it gets no memory


def wait(parameters: dict[str, Any], progress: Progress) -> None:
    progress(0.25)
    print(f"waiting in {os.getpid()}", file=sys.stderr)
    threading.Event().wait()


def killed(parameters: dict[str, Any], progress: Progress) -> Any:
    """Ends as a process that the kernel kills when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)
