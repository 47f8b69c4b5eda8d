"""Process beside a running cell that ends it at the second signal and removes its files.

Python handles a signal between two instructions: during a long call into compiled code it cannot.
But the number of a signal is written to the wake-up descriptor at once, by its C handler. The other
end of that pipe is the input of this process. It is started as a plain script (`python -I -S`)
and imports little, so that it is there at once.

    guard.py PID FILE...    FILE: ready files; one that holds PID is removed after the cell has gone
"""

import os
import signal
import sys
import time

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SAME_REQUEST_S = 0.3
"""Signals that come within this time are one request: `timeout`, for example, sends each twice."""
LAST_CHANCE_S = 0.3
"""Time that the process has after the second signal to leave by itself."""


def guard(pid: int, files: list[str]) -> None:
    first = 0.0
    while numbers := os.read(0, 64):
        if not any(number in ENDING for number in numbers):
            continue
        now = time.monotonic()
        first = first or now
        if now - first > SAME_REQUEST_S:
            time.sleep(LAST_CHANCE_S)
            if os.getppid() == pid:
                os.kill(pid, signal.SIGKILL)
            break
    for file in files:
        remove(file, pid)


def remove(file: str, pid: int) -> None:
    """Removes a ready file that this process has written."""
    import json  # every command imports this module

    try:
        with open(file, encoding="utf-8") as opened:
            own = json.load(opened)["pid"] == pid
        if own:
            os.unlink(file)
    except (OSError, ValueError, LookupError, TypeError):
        return


if __name__ == "__main__":
    guard(int(sys.argv[1]), sys.argv[2:])
