"""A vision process in a thread of this one, over ZeroMQ."""

import contextlib
import os
import threading
from collections.abc import Iterator

from understudy.vision.process import ListenAddress, VisionSetup, serve

WAIT = 60.0
"""Seconds that a busy machine may need."""


@contextlib.contextmanager
def served(setup: VisionSetup) -> Iterator[str]:
    """Its address."""
    server = setup.server()
    reader, writer = os.pipe()
    listening: list[str] = []
    there = threading.Event()

    def ready(where: str) -> None:
        listening.append(where)
        there.set()

    loop = threading.Thread(
        target=serve,
        args=(server.handle_parts, ListenAddress("127.0.0.1", 0, reader), ready),
    )
    loop.start()
    assert there.wait(WAIT)
    try:
        yield listening[0]
    finally:
        os.close(writer)
        loop.join(WAIT)
        os.close(reader)
        server.close()
        assert not loop.is_alive()
