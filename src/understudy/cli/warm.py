"""`understudy warm`: fills the kernel cache, so that no later command waits for the compiler."""

import sys
from typing import Any


def warm() -> None:
    """Fill the kernel cache (once, at set-up)."""
    from understudy.app.kernels import ProgressLine, fill_cache

    line = ProgressLine()
    seconds = fill_cache(line)
    line.clear()
    print(f"kernel cache filled in {seconds:.1f} s")


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
