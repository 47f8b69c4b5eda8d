"""The end of tasks that retry by themselves."""

import asyncio

AGAIN_SECONDS = 0.2


async def end_tasks(*tasks: asyncio.Task[None]) -> None:
    """Cancels tasks until they have ended.

    Before Python 3.12 `asyncio.wait_for` drops a cancellation that comes at the moment at which
    its awaitable ends: a task that catches the error of the awaitable and tries again would never
    end. The libraries of the brokers use it.
    """
    while unfinished := [task for task in tasks if not task.done()]:
        for task in unfinished:
            task.cancel()
        await asyncio.wait(unfinished, timeout=AGAIN_SECONDS)
    await asyncio.gather(*tasks, return_exceptions=True)
