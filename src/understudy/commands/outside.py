"""Work that touches nothing of the cell, on a thread of its own: the loop stays free for a stop."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from understudy.errors import Refused
from understudy.ports.hmi import BROKEN, Later

log = logging.getLogger(__name__)


class Outside:
    """One piece of work after the other; made on the event loop that is to stay free."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, "understudy outside")

    def do(self, work: Callable[[], Any]) -> Later:
        later = Later()

        def settle(done: "asyncio.Future[Any]") -> None:
            later.settle(done.result() if not done.cancelled() else Refused("the cell ends"))

        self._loop.run_in_executor(self._thread, _done, work).add_done_callback(settle)
        return later

    def stop(self) -> None:
        """What has begun ends by itself."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _done(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception:
        log.exception("work outside the loop failed")
        return Refused("a bug; see the log", BROKEN)
