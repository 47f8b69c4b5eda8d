"""The cache of compiled kernels: what a cell needs of it, and how to fill it on several cores.

`understudy warm` fills it at set-up. A cell, a check and the pytest plugin fill what is missing of
the stages that they need. `space/compiled.py` describes how a kernel is compiled and cached.

    python -m understudy.app.kernels STAGE          compiles one, prints a line for each kernel
    python -m understudy.app.kernels --fill STAGE…  fills the cache, prints `compiled total`
"""

import fcntl
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from understudy.errors import unknown
from understudy.registry import kinds, module_of, modules

if TYPE_CHECKING:
    from understudy.config import CellConfig
    from understudy.space.kinematics.chain import Chain

Progress = Callable[[int, int], None]
"""Called with the number of compiled kernels and about how many there are."""
LINE_SECONDS = 5.0
"""Seconds between two progress lines where the output is no terminal."""
FILL = (sys.executable, "-m", "understudy.app.kernels", "--fill")
"""The command that compiles stages and prints `compiled total` to its output."""
GARBAGE = 100_000
"""New objects between two collections while kernels are compiled: 700 cost a sixth of the time."""
READY: set[str] = set()
"""Stages that this process has found in the cache."""
OF_ROBOTS = ("collisions", "motion")
"""Stages that a robot needs unless its module says in `KERNELS` which ones."""


class Stage(NamedTuple):
    """A part of the kernels that one process compiles. `rooms`: the modules that they are in;
    `probes` gives kernels that are in the cache if all are; `load` imports all, and its result
    compiles them for some arms."""

    rooms: tuple[str, ...]
    probes: Callable[[], tuple[Any, ...]]
    load: "Callable[[], Callable[[list[Chain]], None]]"


# ── stages ──────────────────────────────────────────────────────────────────────────────────────


def _collisions() -> "Callable[[list[Chain]], None]":
    from understudy.space.warm import warm_collisions

    return partial(_for_each, warm_collisions)


def _collision_probes() -> tuple[Any, ...]:
    from understudy.space.collision.sweep import certify, measure_seen
    from understudy.space.collision.two_robots import prove

    return certify, measure_seen, prove


def _motion() -> "Callable[[list[Chain]], None]":
    from understudy.gcode import program
    from understudy.motion.dynamics import dynamics
    from understudy.motion.warm import warm, warm_tool_paths
    from understudy.offline.validate.judge import warm_checks
    from understudy.space.warm import warm_kinematics

    def compile_kernels(arms: "list[Chain]") -> None:
        program.warm()
        warm_checks()
        for arm in arms:
            warm_kinematics(arm)
            warm(dynamics(arm))
            warm_tool_paths(arm)

    return compile_kernels


def _motion_probes() -> tuple[Any, ...]:
    from understudy.gcode.program import split_lines
    from understudy.motion.cartesian import trace_lines
    from understudy.motion.plan import motions_at
    from understudy.space.kinematics.chain import flange_frames

    return split_lines, motions_at, trace_lines, flange_frames


def _reach() -> "Callable[[list[Chain]], None]":
    from understudy.space.warm import warm_reach

    return partial(_for_each, warm_reach)


def _reach_probes() -> tuple[Any, ...]:
    from understudy.space.reach.reach_map import reach_points

    return (reach_points,)


def _sight() -> "Callable[[list[Chain]], None]":
    from understudy.sight.warm import warm

    return lambda arms: warm()


def _sight_probes() -> tuple[Any, ...]:
    from understudy.sight.rasters import mark_pixels

    return (mark_pixels,)


def _for_each(compile_kernels: "Callable[[Chain], None]", arms: "list[Chain]") -> None:
    for arm in arms:
        compile_kernels(arm)


STAGES = {
    "collisions": Stage(("space.collision",), _collision_probes, _collisions),
    "motion": Stage(("gcode", "motion", "offline", "space.kinematics"), _motion_probes, _motion),
    "reach": Stage(("space.reach",), _reach_probes, _reach),
    "sight": Stage(("sight",), _sight_probes, _sight),
}


def stages() -> dict[str, Stage]:
    """All stages: those of every cell, and one for each kind of robot that has kernels of its own
    (`warm_kernels` and `kernel_probe` of its module)."""
    own = {
        kind: _own_stage(module)
        for _, kind, module in modules("robots")
        if hasattr(module, "warm_kernels")
    }
    return STAGES | own


def _own_stage(module: Any) -> Stage:
    room = module.__name__.removeprefix("understudy.")
    return Stage((room,), lambda: (module.kernel_probe(),), partial(_own, module))


def _own(module: Any) -> "Callable[[list[Chain]], None]":
    compile_kernels = module.warm_kernels()
    return lambda arms: compile_kernels()


def needed(config: "CellConfig") -> tuple[str, ...]:
    """The stages that a cell needs."""
    robots = config.robots.values()
    used = [("robots", robot.kind) for robot in robots]
    used += [("devices", device.kind) for device in config.devices.values()]
    used += [("devices", kind) for robot in robots for kind in robot.devices]
    return tuple(dict.fromkeys(name for table, kind in used for name in _needed_by(table, kind)))


def needed_offline(config: "CellConfig") -> tuple[str, ...]:
    """The stages that a check of a program on this cell needs."""
    return tuple(name for name in needed(config) if name in OF_ROBOTS)


def _needed_by(table: str, kind: str) -> tuple[str, ...]:
    module = module_of(table, kind)
    if hasattr(module, "warm_kernels"):
        return (kind,)
    names: tuple[str, ...] = getattr(module, "KERNELS", OF_ROBOTS if table == "robots" else ())
    return names


# ── what is there ───────────────────────────────────────────────────────────────────────────────


def is_warm(names: Iterable[str] | None = None) -> bool:
    """The cache holds the present version of the kernels of these stages, or of all."""
    return not missing(names)


def missing(names: Iterable[str] | None = None) -> tuple[str, ...]:
    """The stages, of these or of all, whose kernels are not in the cache."""
    known = {name: _stage(name) for name in names} if names is not None else stages()
    return tuple(name for name, part in known.items() if not all(map(_is_cached, part.probes())))


def _stage(name: str) -> Stage:
    """One stage: the modules of other robots than those of the cell are not loaded for it."""
    if name in STAGES:
        return STAGES[name]
    module = module_of("robots", name) if name in kinds("robots") else None
    if not hasattr(module, "warm_kernels"):
        raise unknown("stage of the kernels", name, stages())
    return _own_stage(module)


def _is_cached(kernel: Any) -> bool:
    """numba reads the index of a kernel as empty if its stamp differs from that of the source."""
    return bool(kernel._cache._cache_file._load_index())


def cache_elsewhere() -> str:
    """The folder of the cache, if the one of the sources cannot be written."""
    from understudy.space.kinematics.chain import flange_frames

    kernel: Any = flange_frames
    return str(kernel._cache.elsewhere)


# ── filling it ──────────────────────────────────────────────────────────────────────────────────


def _shipped_arms() -> "list[Chain]":
    from understudy.config.files import shipped_robots
    from understudy.space.kinematics.chain import chain
    from understudy.space.model.urdf import read

    files = shipped_robots().items()
    return [chain(read(file.read_text(encoding="utf-8"), file=name)) for name, file in files]


def fill_cache(progress: Progress) -> float:
    """Compiles what is not cached; returns the seconds.

    At the end all stages run in this process: it loads what the others compiled, and compiles what
    is missing because two of them wrote the same index at the same time, or one of them failed.
    A cache that looks filled needs this last step only.
    """
    started = time.monotonic()
    parts = stages()
    compiled = compile_missing(parts, progress)
    arms = _shipped_arms()

    def count(kernel: str) -> None:
        compiled.add(kernel)
        progress(len(compiled), len(compiled))

    with _calling_per_kernel(count):
        for part in parts.values():
            part.load()(arms)
    return time.monotonic() - started


def compile_missing(names: Iterable[str], progress: Progress) -> set[str]:
    """Compiles the stages, of these, that are not cached, each in a process of its own; returns
    the names of the kernels that were compiled."""
    compiled = set[str]()
    if not (cold := missing(set(names) - READY)):
        READY.update(names)
        return compiled
    with _one_at_a_time():
        _compile(missing(cold), compiled, progress)
    return compiled


def _compile(cold: Sequence[str], compiled: set[str], progress: Progress) -> None:
    if not cold:
        return
    if elsewhere := cache_elsewhere():
        print(f"the package cannot be written: kernels are kept in {elsewhere}", file=sys.stderr)
    total = sum(not _is_cached(kernel) for kernel in _kernels_of(cold))
    progress(0, total)
    for kernel in _compiled_by_workers(cold):
        compiled.add(kernel)
        progress(len(compiled), max(total, len(compiled)))


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Waits while another process fills this cache: it may compile the same kernels."""
    from understudy.space.kinematics.chain import flange_frames

    kernel: Any = flange_frames
    with ExitStack() as ends:
        with suppress(OSError):  # a folder that cannot be written
            lock = ends.enter_context((Path(kernel._cache.cache_path) / "lock").open("w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("waiting for another process that compiles kernels", file=sys.stderr)
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _kernels_of(names: Iterable[str]) -> list[Any]:
    """The kernels in the modules of some stages."""
    from understudy.space.compiled import KERNELS

    known = stages()
    for name in names:
        known[name].load()
    rooms = tuple(f"understudy.{room}" for name in names for room in known[name].rooms)
    found = (each for each in KERNELS if each.__module__.startswith(rooms))
    return [getattr(sys.modules[each.__module__], each.__name__) for each in found]


def _compiled_by_workers(names: Iterable[str]) -> Generator[str, None, None]:
    """Runs every stage in a process; gives the names of the kernels as they are compiled."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as lines:
        command = FILL[:-1]
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
        elif now - self._printed >= LINE_SECONDS or not compiled:
            self._printed = now
            print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Removes the line from a terminal."""
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def _calling_per_kernel(each: Callable[[str], None]) -> Iterator[None]:
    """Calls the function with the name of each kernel of the package that is compiled."""

    from numba.core import event

    from understudy.space.compiled import KERNELS

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


def _compile_stage(name: str) -> None:
    gc.set_threshold(GARBAGE)
    compile_kernels = stages()[name].load()
    with _calling_per_kernel(lambda kernel: print(kernel, flush=True)):
        compile_kernels(_shipped_arms())


def _fill(names: Sequence[str]) -> None:
    line = ProgressLine()

    def progress(compiled: int, total: int) -> None:
        line(compiled, total)
        print(compiled, total, flush=True)

    compile_missing(names, progress)
    line.clear()


if __name__ == "__main__":
    _fill(sys.argv[2:]) if sys.argv[1] == "--fill" else _compile_stage(sys.argv[1])
