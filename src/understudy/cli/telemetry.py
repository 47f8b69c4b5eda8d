"""A KUKA's telemetry beside a job of records: called where it listens, awaited where it calls."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from understudy.errors import ConfigError
from understudy.robots.kuka.driver import TelemetryReader
from understudy.robots.kuka.records import KukaReading
from understudy.wire.dial import Destination, words_of
from understudy.wire.place import parse_place

READ_SIZE = 4096
FORMS = "HOST:PORT, or listen:[HOST:]PORT where the robot calls"
FIRST_WORD_SECONDS = 5.0
GLANCE_SECONDS = 1.0
"""For telemetry that nobody asked for: if it is there, it is used."""

Told = Callable[[KukaReading], None]


class Telemetry(NamedTuple):
    """Where it comes from; `calls`: the robot calls there. `wanted`: nothing is sent without."""

    place: Destination
    calls: bool = False
    wanted: bool = False

    @staticmethod
    def of(text: str) -> "Telemetry":
        """As it is written on the command line."""
        where = text.removeprefix("listen:")
        calls = where != text
        try:
            place = parse_place(where if ":" in where or not calls else f":{where}")
        except ConfigError:
            place = None
        if not isinstance(place, Destination):
            raise ConfigError("no place for telemetry", value=text, allowed=FORMS)
        return Telemetry(place, calls, wanted=True)


@contextlib.asynccontextmanager
async def observed(source: Telemetry, tell: Told) -> AsyncIterator[str]:
    """While it lasts every reading is told; why none came in good time, or nothing."""
    first = asyncio.Event()
    patience = FIRST_WORD_SECONDS if source.wanted else GLANCE_SECONDS

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = TelemetryReader()
        with contextlib.closing(writer), contextlib.suppress(OSError):
            while data := await reader.read(READ_SIZE):
                for reading in frames.feed(data):
                    tell(reading)
                    first.set()

    async with asyncio.TaskGroup() as tasks, contextlib.AsyncExitStack() as stack:

        def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            stack.callback(tasks.create_task(read(reader, writer)).cancel)

        host, port = source.place.host, source.place.port
        try:
            if source.calls:
                stack.callback((await asyncio.start_server(begin, host, port)).close)
            else:
                begin(*await asyncio.open_connection(host, port))
            await asyncio.wait_for(first.wait(), patience)
        except (OSError, UnicodeError, TimeoutError) as problem:
            why = words_of(problem) or f"none in {patience:g} s"
            yield f"no telemetry from {source.place}: {why}"
        else:
            yield ""
