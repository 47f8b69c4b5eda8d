"""`understudy` and `python -m understudy`."""

import os
import signal
import sys


def _leave(number: int, frame: object) -> None:
    """Quietly: nothing was begun that would have to be ended. An exception would not do, since
    somebody may catch it: whoever was loading a library, or a callback of it."""
    os._exit(0 if sys.argv[1:2] == ["run"] else 128 + number)


def main() -> int:
    """A command that has begun something listens to signals itself."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    from understudy.cli import main as command_line

    if sys.argv[1:2] != ["run"]:  # it listens when its cell is built
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        return command_line()
    finally:  # who is leaving already is not told to leave
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
