"""A live cell with one of its doors open, for tests that are clients of the door."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from understudy.app.live import Live, Options
from understudy.config import load_config, read_config

PATIENCE_S = 60
Scene = Callable[[Live, str], Awaitable[None]]
"""Is given the cell and the address of the door."""
OpenDoor = Callable[[Live, str], AbstractAsyncContextManager[dict[str, str]]]


def in_cell(
    open_door: OpenDoor,
    scene: Scene,
    cell: str = "default",
    *,
    value: str = "0",
    rate: float = 10.0,
    **options: Any,
) -> None:
    """``cell``: a name, or the text of a cell file; ``value``: that of the option of the door."""

    async def run() -> None:
        config = read_config(cell, "cell.yaml") if "\n" in cell else load_config(cell)
        live = Live(config, Options(rate=rate, ephemeral=True, **options))
        await live.start()
        try:
            async with open_door(live, value) as found:
                (address,) = found.values()
                await asyncio.wait_for(scene(live, address), PATIENCE_S)
        finally:
            await live.stop()

    asyncio.run(run())
