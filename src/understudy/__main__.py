"""`understudy` and `python -m understudy`."""

import gc
import os
import signal
import sys

from understudy.app.guard import ENDING


def _leave(number: int, frame: object) -> None:
    """Ends the process while modules are still loading: nothing has been started that needs a stop.
    An exception would not do, since the code that loads a library may catch it."""
    os._exit(0 if sys.argv[1:2] == ["run"] else 128 + number)


def _loaded(command: str) -> None:
    """The modules of a command are loaded: signals act as usual; `run` sets handlers of its own.

    The garbage collector leaves out the objects of these modules from now on.
    """
    gc.freeze()
    gc.enable()
    if command != "run":
        for number in ENDING:
            _replace(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _replace(number: int, handler: "signal._HANDLER") -> None:
    """Sets a handler, unless the signal is ignored on request: `nohup` does so with SIGHUP."""
    if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
        signal.signal(number, handler)


def _ignore_one(number: int, frame: object) -> None:
    """A process that is ending ignores a signal; the next one ends it."""
    signal.signal(number, signal.SIG_DFL)


def main() -> int:
    """Runs the command line. A command that has started something handles signals itself.

    Loading the modules allocates many objects that stay: no garbage is collected meanwhile. The
    higher threshold saves collections over the objects of a cell. Both are about a tenth of the CPU
    time of a short command. So is starting the threads of numpy's BLAS: our matrices are small.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()
    gc.set_threshold(100_000, 20, 20)
    for number in ENDING:
        _replace(number, _leave)
    from understudy.cli import main as command_line

    try:
        return command_line(loaded=_loaded)
    finally:
        gc.freeze()  # the interpreter would look for garbage in all that it is about to leave
        for number in ENDING:
            if signal.getsignal(number) in (_leave, signal.default_int_handler, signal.SIG_DFL):
                signal.signal(number, _ignore_one)


if __name__ == "__main__":
    sys.exit(main())
