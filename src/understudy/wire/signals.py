"""Ctrl-C and SIGTERM, heard by the event loop."""

import asyncio
import contextlib
import signal
from collections.abc import Callable


def on_signals(end: Callable[[], object]) -> None:
    """Call `end` when one comes; off the main thread nobody sends any."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, end)
