"""`understudy` and `python -m understudy`."""

import gc
import os
import signal
import sys


def _leave(number: int, frame: object) -> None:
    """Ends the process while modules are still loading: nothing has been started that needs a stop.
    An exception would not do, since the code that loads a library may catch it."""
    os._exit(0 if sys.argv[1:2] == ["run"] else 128 + number)


def _restore_signals(command: str) -> None:
    """The modules of a command are loaded: signals act as usual; `run` sets handlers of its own."""
    if command != "run":
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def main() -> int:
    """Runs the command line. A command that has started something handles signals itself.

    Loading the modules allocates many objects that stay; the higher threshold saves the garbage
    collections over them, about a tenth of the CPU time of a short command.
    """
    gc.set_threshold(100_000, 20, 20)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    from understudy.cli import main as command_line

    try:
        return command_line(loaded=_restore_signals)
    finally:  # a process that is ending ignores further signals
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
