"""`understudy warm`: fills the kernel cache, so that no later command waits for the compiler."""

import sys
import time
from pathlib import Path
from typing import Any


def warm() -> None:
    """Fill the kernel cache (once, at set-up)."""
    from understudy.config.files import shipped_robots
    from understudy.gcode import program
    from understudy.motion.dynamics import dynamics
    from understudy.motion.warm import warm as warm_motion
    from understudy.motion.warm import warm_tool_paths
    from understudy.space.kinematics.chain import chain
    from understudy.space.model.urdf import read
    from understudy.space.warm import warm as warm_space

    started = time.monotonic()
    program.warm()
    for name, file in shipped_robots().items():
        arm = chain(read(file.read_text(encoding="utf-8"), file=name))
        warm_space(arm)
        warm_motion(dynamics(arm))
        warm_tool_paths(arm)
    print(f"kernel cache filled in {time.monotonic() - started:.1f} s")


def is_warm() -> bool:
    """The cache holds a kernel of each package, none older than its source."""
    from understudy.gcode.program import split_lines
    from understudy.motion.plan import motions_at
    from understudy.space.collision.certify import certify
    from understudy.space.kinematics.forward import flange_frames

    return all(map(_is_cached, (split_lines, motions_at, certify, flange_frames)))


def _is_cached(kernel: Any) -> bool:
    source = Path(kernel.py_func.__code__.co_filename)
    indices = Path(kernel.stats.cache_path).glob(f"{source.stem}.{kernel.__name__}-*.nbi")
    written = source.stat().st_mtime
    return any(index.stat().st_mtime >= written for index in indices)


def announce() -> None:
    """Prints one line before the first kernel is compiled: it takes long, and only once."""
    if "numba" not in sys.modules:  # no imported module needs a kernel
        return
    from numba.core import event

    class Announcer(event.Listener):
        printed = False

        def on_start(self, event: Any) -> None:
            if not self.printed:
                print("compiling kernels: this happens once (see understudy warm)", file=sys.stderr)
            self.printed = True

        def on_end(self, event: Any) -> None:
            return None

    event.register("numba:compile", Announcer())  # type: ignore[no-untyped-call]
