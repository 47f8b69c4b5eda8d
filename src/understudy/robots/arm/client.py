"""`GrblHalDriver` of the design document, for scripts: a real controller whose calls wait."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from understudy.app.at_now import AtNow
from understudy.config import CellConfig
from understudy.errors import Refused
from understudy.ports import ControllerStatus
from understudy.robots.arm.offline_classes import config_of
from understudy.robots.arm.real import driver_of
from understudy.robots.grblhal import driver
from understudy.robots.grblhal.driver import Config
from understudy.simulation.cell import Cell
from understudy.wire.dial import Dial, parse_place
from understudy.wire.exchange import Exchange
from understudy.wire.pump import Pump

LOOK_S = 0.01
"""Pause between two looks at a controller."""
CALL_TIMEOUT_S = 10.0


class GrblHalDriver:
    """A real grblHAL controller of an arm, at a serial port or over TCP.

    It has the methods of a `VirtualController`; programs are in the same dialect and become joint
    lines. ``place``: ``/dev/ttyACM0``, ``serial:///dev/ttyACM0?baud=115200``, ``HOST:PORT``.
    ``source`` and ``robot``: the arm, as for `MotionSimulator`. Leave it with `close`, or use it in
    a `with` statement.
    """

    def __init__(
        self,
        place: str,
        source: str | CellConfig = "g60",
        *,
        robot: str = "",
        config: Config | None = None,
    ) -> None:
        self._place = parse_place(place)
        self._driver = driver_of(config_of(source), robot, config or Config(dialect="arm"))
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._ended: asyncio.Event | None = None
        self._pump: Pump | None = None
        self._thread = threading.Thread(target=self._run, name=f"driver {place}", daemon=True)
        self._thread.start()
        if not self._ready.wait(CALL_TIMEOUT_S):
            raise TimeoutError("the thread of the driver did not start")

    # ── connection ──

    def connect(self, timeout_s: float = 5.0) -> Refused | None:
        """Connects, and waits until the controller answers; else returns why it does not."""
        refused = self._call("connect")
        deadline = time.monotonic() + timeout_s
        while refused is None and not self.is_connected():
            if time.monotonic() > deadline:
                why = self.status().error_message or f"{self._place} does not answer"
                self._call("disconnect")
                return Refused(why)
            time.sleep(LOOK_S)
        return refused if isinstance(refused, Refused) else None

    def close(self) -> None:
        """Stops what this driver has started, disconnects and ends its thread."""
        if self._thread.is_alive():
            self._call("disconnect")
            deadline = time.monotonic() + CALL_TIMEOUT_S
            while self._driver.wanted() is not None and time.monotonic() < deadline:
                time.sleep(LOOK_S)
            assert self._ended is not None
            self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join(CALL_TIMEOUT_S)

    def __enter__(self) -> "GrblHalDriver":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ── time ──

    def wait(self, duration: float) -> None:
        time.sleep(duration)

    def run_until_idle(self, timeout: float = 3600.0) -> None:
        """Waits until nothing is under way."""
        deadline = time.monotonic() + timeout
        while self.status().moving and not self.status().error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"still under way after {timeout:g} seconds")
            time.sleep(LOOK_S)

    # ── everything else ──

    def is_connected(self) -> bool:
        return bool(self._call("is_connected"))

    def status(self) -> ControllerStatus:
        found: ControllerStatus = self._call("status")
        return found

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or not callable(getattr(driver.GrblHalDriver, name, None)):
            raise AttributeError(f"GrblHalDriver has no {name!r}")
        return lambda *arguments, **named: self._call(name, *arguments, **named)

    def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Calls a method of the driver in its thread, at the time of its pump."""

        async def call() -> Any:
            assert self._pump is not None
            return self._pump.act(
                lambda now: getattr(AtNow(self._driver, lambda: now), name)(*arguments, **named)
            )

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(CALL_TIMEOUT_S)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._ended = asyncio.Event()
        cell = Cell("driver", digest="", components={"robot": self._driver}, faces={})
        self._pump = Pump(Exchange(cell), real=True)
        dial = Dial(self._driver, self._place, self._pump)
        self._pump.start()
        dial.start()
        self._ready.set()
        await self._ended.wait()
        await dial.stop()
        self._pump.stop()
