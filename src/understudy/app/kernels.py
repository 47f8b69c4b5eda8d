"""The cache of compiled kernels: whether it is filled, and how to fill it on several cores.

`understudy warm` fills it at set-up, the pytest plugin before the first robot that finds it empty.
`space/compiled.py` describes how a kernel is compiled and cached.

`python -m understudy.app.kernels STAGE` compiles one stage and prints a line for each kernel.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from numba.core import event

from understudy.config.files import shipped_robots
from understudy.gcode import program
from understudy.motion import warm as motion
from understudy.motion.cartesian import trace_lines
from understudy.motion.dynamics import dynamics
from understudy.motion.plan import motions_at
from understudy.registry import modules
from understudy.sight import rasters
from understudy.sight import warm as sight
from understudy.space import warm as space
from understudy.space.collision.sweep import certify
from understudy.space.compiled import KERNELS
from understudy.space.kinematics.chain import Chain, chain, flange_frames
from understudy.space.model.urdf import read

Progress = Callable[[int, int], None]
"""Called with the number of compiled kernels and about how many there are."""
LINE_SECONDS = 5.0
"""Seconds between two progress lines where the output is no terminal."""


def is_warm() -> bool:
    """The cache holds the present version of a kernel of each package."""
    core = (program.split_lines, motions_at, trace_lines, certify, flange_frames)
    own = (
        module.kernel_probe()
        for _, _, module in modules("robots")
        if hasattr(module, "kernel_probe")
    )
    return all(map(_is_cached, (*core, rasters.mark_pixels, *own)))


def cache_elsewhere() -> str:
    """The folder of the cache, if the one of the sources cannot be written."""
    kernel: Any = flange_frames
    return str(kernel._cache.elsewhere)


def _is_cached(kernel: Any) -> bool:
    """numba reads the index of a kernel as empty if its stamp differs from that of the source."""
    return bool(kernel._cache._cache_file._load_index())


def _shipped_arms() -> list[Chain]:
    files = shipped_robots().items()
    return [chain(read(file.read_text(encoding="utf-8"), file=name)) for name, file in files]


def _compile_collisions(arms: list[Chain]) -> None:
    for arm in arms:
        space.warm_collisions(arm)


def _compile_motion(arms: list[Chain]) -> None:
    program.warm()
    sight.warm()
    for arm in arms:
        space.warm_kinematics(arm)
        motion.warm(dynamics(arm))
        motion.warm_tool_paths(arm)


def stages() -> dict[str, Callable[[list[Chain]], None]]:
    """Independent parts of the work, of about the same size; one for each kind of robot that has
    kernels of its own (`warm_kernels` of its module). Imports all kernels."""
    own = {
        kind: partial(_call, module.warm_kernels())
        for _, kind, module in modules("robots")
        if hasattr(module, "warm_kernels")
    }
    return {"collisions": _compile_collisions, "motion": _compile_motion, **own}


def _call(compile_kernels: Callable[[], None], arms: list[Chain]) -> None:
    compile_kernels()


def fill_cache(progress: Progress) -> float:
    """Compiles what is not cached, each stage in a process of its own; returns the seconds.

    At the end all stages run in this process: it loads what the others compiled, and compiles what
    is missing because two of them wrote the same index at the same time, or one of them failed.
    A cache that looks filled needs this last step only.
    """
    started = time.monotonic()
    if elsewhere := cache_elsewhere():
        print(f"the package cannot be written: kernels are kept in {elsewhere}", file=sys.stderr)
    parts = stages()  # their kernels are counted from the beginning
    arms, compiled = _shipped_arms(), set[str]()

    def count(kernel: str) -> None:
        compiled.add(kernel)
        progress(len(compiled), len(KERNELS))

    if not is_warm():
        for kernel in _compiled_by_workers(parts):
            count(kernel)
    with _calling_per_kernel(count):
        for compile_stage in parts.values():
            compile_stage(arms)
    return time.monotonic() - started


def _compiled_by_workers(names: Iterable[str]) -> Generator[str, None, None]:
    """Runs every stage in a process; gives the names of the kernels as they are compiled."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as lines:
        command = [sys.executable, "-m", __name__]
        workers = [subprocess.Popen([*command, stage], stdout=writer) for stage in names]
        os.close(writer)
        try:
            for line in lines:
                yield line.strip()
        finally:
            for worker in workers:
                worker.terminate()
                worker.wait()


class ProgressLine:
    """One line that counts on a terminal; elsewhere a new line every few seconds."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._started = self._printed = time.monotonic()

    def __call__(self, compiled: int, total: int) -> None:
        now = time.monotonic()
        text = f"compiling kernels: {compiled} of about {total}, {now - self._started:.0f} s"
        if self._terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif now - self._printed >= LINE_SECONDS:
            self._printed = now
            print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Removes the line from a terminal."""
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def _calling_per_kernel(each: Callable[[str], None]) -> Iterator[None]:
    """Calls the function with the name of each kernel of the package that is compiled."""

    class Compilations(event.Listener):
        def on_start(self, event: Any) -> None:
            return None

        def on_end(self, event: Any) -> None:
            if (function := event.data["dispatcher"].py_func) in KERNELS:
                each(f"{function.__module__}.{function.__qualname__}")

    listener = Compilations()
    event.register("numba:compile", listener)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    with _calling_per_kernel(lambda kernel: print(kernel, flush=True)):
        stages()[sys.argv[1]](_shipped_arms())
