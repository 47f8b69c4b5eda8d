"""The link of a page's process to its cell, in tests."""

import asyncio

from understudy.hmi.link import CellLink


async def first_status(link: CellLink) -> None:
    """Returns when the cell has sent its status."""
    while True:
        if link.status:
            return
        await asyncio.sleep(0.01)
