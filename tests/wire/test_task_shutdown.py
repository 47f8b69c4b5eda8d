"""Tasks that retry end when their owner ends them."""

import asyncio

from understudy.wire.task_shutdown import end_tasks


def test_a_task_that_loses_a_cancellation_is_cancelled_again() -> None:
    """The awaited future fails at the very moment of the first cancellation, which
    `asyncio.wait_for` of Python 3.11 drops, as a refused login at a broker does; later versions
    keep it, so the retrying task also drops the first one by itself."""

    async def work() -> int:
        attempts: list[asyncio.Future[None]] = []

        async def retry() -> None:
            while True:
                attempts.append(asyncio.get_running_loop().create_future())
                try:
                    await asyncio.wait_for(attempts[-1], 1000.0)
                except OSError:
                    continue
                except asyncio.CancelledError:
                    if len(attempts) > 1:
                        raise

        task = asyncio.create_task(retry())
        await asyncio.sleep(0)  # its first attempt begins
        attempts[0].set_exception(ConnectionRefusedError())
        async with asyncio.timeout(60):
            await end_tasks(task)
        assert task.cancelled()
        return len(attempts)

    assert asyncio.run(work()) == 2


def test_the_error_of_a_task_stays_inside() -> None:
    async def work() -> None:
        async def fail() -> None:
            raise OSError("gone")

        task = asyncio.create_task(fail())
        await asyncio.sleep(0)
        await end_tasks(task)
        assert isinstance(task.exception(), OSError)

    asyncio.run(work())
