"""Link to the cell: answers, refusals, timeouts, and a cell that restarts."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from tests.browsers import TIMEOUT_SECONDS
from tests.free_ports import free_port
from tests.links import first_status

from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.hmi.link import CellLink, LinkError
from understudy.ports.hmi import Later

LINK, STATUS = "g60.hmi_link", "g60.hmi_link.status"
SOON_S = 0.2
"""Timeout of calls to a cell that is gone or at work."""


def run(
    scene: Callable[[Live, CellLink], Awaitable[None]], timeout_s: float = TIMEOUT_SECONDS
) -> None:
    async def in_cell() -> None:
        ports = {LINK: free_port(), STATUS: free_port()}
        live = Live(load_config("g60_welding"), Options(rate=1.0, ephemeral=True, ports=ports))
        await live.start()
        link = CellLink(live.endpoints[LINK], live.endpoints[STATUS], timeout_s=timeout_s)
        await link.start()
        try:
            await asyncio.wait_for(scene(live, link), TIMEOUT_SECONDS)
        finally:
            await link.stop()
            await live.stop()

    asyncio.run(in_cell())


def test_a_command_gives_its_result() -> None:
    async def scene(live: Live, link: CellLink) -> None:
        assert (await link.call("rate", {"rate": 2.0}, role="operator"))["rate"] == 2.0

    run(scene)


@pytest.mark.parametrize(
    ("command", "parameters", "role", "code"),
    [
        ("rte", {}, "operator", 1),
        ("rate", {"rate": "fast"}, "operator", 2),
        ("rate", {"rate": object()}, "operator", 2),
        ("rate", {"rate": 2.0}, "viewer", 3),
        ("inject", {"fault": "tea", "on": "g60"}, "operator", 4),
    ],
)
def test_a_refusal_has_a_code_and_a_message(
    command: str, parameters: dict[str, Any], role: Any, code: int
) -> None:
    async def scene(live: Live, link: CellLink) -> None:
        with pytest.raises(LinkError) as refused:
            await link.call(command, parameters, role=role)
        assert refused.value.code == code
        assert refused.value.message

    run(scene)


def test_commands_do_not_wait_for_one_another() -> None:
    async def scene(live: Live, link: CellLink) -> None:
        asked = [link.call("now", role="viewer") for _ in range(50)]
        answers = await asyncio.gather(*asked)
        times = [answer["now_ns"] for answer in answers]
        assert times == sorted(times)

    run(scene)


def test_the_last_status_of_the_cell_is_kept() -> None:
    async def scene(live: Live, link: CellLink) -> None:
        await first_status(link)
        assert link.status["robots"].keys() == {"g60"}

    run(scene)


async def _retried(link: CellLink, query: str) -> Any:
    """The first answer, once a cell is there."""
    while True:
        with contextlib.suppress(LinkError):
            return await link.call(query, role="viewer")


def test_a_command_to_a_cell_that_is_gone_fails_and_is_not_delivered_later() -> None:
    async def scene(live: Live, link: CellLink) -> None:
        await link.call("now", role="viewer", timeout_s=TIMEOUT_SECONDS)  # it is connected
        ports = {name: int(live.endpoints[name].rpartition(":")[2]) for name in (LINK, STATUS)}
        await live.stop()
        with pytest.raises(LinkError) as refused:
            await link.call("rate", {"rate": 7.0}, role="operator")
        assert refused.value.code in (20, 21)
        again = Live(load_config("g60_welding"), Options(ephemeral=True, ports=ports))
        await again.start()
        try:
            assert (await _retried(link, "now"))["rate"] == 1.0
        finally:
            await again.stop()

    run(scene, timeout_s=SOON_S)


def test_a_waiting_call_fails_when_the_link_is_closed() -> None:
    async def scene(live: Live, link: CellLink) -> None:
        await link.call("now", role="viewer")
        waiting = asyncio.create_task(link.call("now", role="viewer"))
        await asyncio.sleep(0)
        await link.stop()
        with pytest.raises(LinkError) as refused:
            await waiting
        assert refused.value.code == 21

    run(scene)


def test_a_command_waits_as_long_as_the_cell_is_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many timeouts long, while `runs` lists the work; then the answer comes."""

    async def scene(live: Live, link: CellLink) -> None:
        release, work = threading.Event(), Later()
        listed = live._runs.in_thread("objects", lambda progress: release.wait())
        assert isinstance(listed, Later)
        listed.then(work.settle)
        live.operator.changes.do(lambda: work)
        questions: list[str] = []
        call = live.commands.call

        def counted(name: str, parameters: Mapping[str, Any], role: str) -> Any:
            questions.append(name)
            if questions.count("runs") == 3:
                release.set()
            return call(name, parameters, role)

        monkeypatch.setattr(live.commands, "call", counted)
        answer = await link.call("snapshot", role="operator", timeout_s=SOON_S)
        assert "snapshot" in answer
        assert questions.count("runs") >= 3

    run(scene)
