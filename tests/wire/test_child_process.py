"""Supervision of child processes: lines, restarts with delays, the end."""

import asyncio
import logging
import signal
from collections.abc import Callable
from typing import Any

import pytest

from understudy.wire.child_process import (
    ChildProcess,
    Process,
    Program,
    how_it_ended,
    worker_process,
)

PATIENCE_SECONDS = 60.0


def program(script: str, read_line: Callable[[str], None] = print, **options: Any) -> Program:
    return Program("the helper", lambda: ["sh", "-c", script], read_line=read_line, **options)


def run(work: Callable[[], Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work(), PATIENCE_SECONDS))


def test_a_process_that_ends_is_started_again_after_longer_and_longer_delays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines: list[str] = []
    fourth = asyncio.Event()

    def read(line: str) -> None:
        lines.append(line)
        if len(lines) == 4:
            fourth.set()

    async def work() -> int | None:
        child = ChildProcess(
            program("echo hello; exit 3", read, first_delay=0.01, longest_delay=0.02)
        )
        child.supervise()
        await fourth.wait()
        await child.stop()
        return child.pid

    with caplog.at_level(logging.WARNING):
        assert run(work) is None
    assert lines[:4] == ["hello"] * 4
    said = [each.getMessage() for each in caplog.records][:3]
    assert said == [
        f"the helper ended (exit code 3); it is started again in {delay} s"
        for delay in ("0.01", "0.02", "0.02")
    ]


def test_a_process_ends_when_its_input_is_closed_and_by_force_if_it_does_not() -> None:
    async def ended(script: str, seconds: float) -> int | None:
        heard = asyncio.Event()
        child = ChildProcess(program(script, lambda line: heard.set(), stop_seconds=seconds))
        child.supervise()
        await heard.wait()
        assert child.pid is not None
        return await child.stop()

    assert run(lambda: ended("echo there; read line; exit 7", PATIENCE_SECONDS)) == 7
    assert run(lambda: ended("echo there; exec sleep 1000", 0.01)) == -signal.SIGKILL


def test_a_process_that_does_not_get_ready_is_ended() -> None:
    async def fail(process: Process) -> None:
        raise OSError("it says nothing")

    async def work() -> tuple[int | None, int]:
        child = ChildProcess(program("exec sleep 1000", until_ready=fail, stop_seconds=0.01))
        with pytest.raises(OSError, match="it says nothing"):
            await child.start()
        return child.pid, child.starts

    assert run(work) == (None, 0)


def test_a_worker_is_killed_at_the_end() -> None:
    async def work() -> int | None:
        async with worker_process("http.server", longest_line=1000) as process:
            assert process.returncode is None
        return process.returncode

    assert run(work) == -signal.SIGKILL


def test_exit_codes_in_words() -> None:
    assert how_it_ended(3) == "exit code 3"
    assert how_it_ended(-signal.SIGKILL) == "killed by SIGKILL"
