"""Which addresses a cell may listen on, and who may command a REAL robot."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.links import first_status

from understudy.app.live import Live, Options
from understudy.cli.hmi import Keys
from understudy.config import Hmi, read_config
from understudy.errors import ConfigError
from understudy.hmi.link import CellLink, LinkError
from understudy.hmi.state import StateFeed
from understudy.operator import doors

TOKEN = "a-token-of-20-letters"
PATIENCE_S = 60.0
LINK, STATUS = "bench.hmi_link", "bench.hmi_link.status"
ROBOT = """
robots:
  bench:
    kind: text_robot
    faces:
      text_tcp: {}
      hmi_link: {%s}
"""


def cell(head: str = "", link: str = "port: 0, status: {port: 0}", robot: str = "") -> str:
    return head + ROBOT % link + robot


def run(
    text: str, scene: Callable[[Live], Awaitable[None]], *, real: bool = False, hmi: bool = True
) -> None:
    async def in_cell() -> None:
        options = Options(rate=1.0, ephemeral=True, hmi=hmi, real=real)
        live = Live(read_config(text, "cell.yaml"), options)
        await live.start()
        try:
            await asyncio.wait_for(scene(live), PATIENCE_S)
        finally:
            await live.stop()

    asyncio.run(in_cell())


async def nothing(live: Live) -> None:
    pass


async def ask(live: Live, **request: Any) -> Any:
    """The answer of the control endpoint; None if it closes the connection without one."""
    host, _, port = live.endpoints["control"].removeprefix("tcp://").rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    writer.write(json.dumps(request).encode() + b"\n")
    line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return json.loads(line) if line else None


# ── other addresses than loopback ──

ELSEWHERE = {
    "control": cell("control: {host: 0.0.0.0, port: 0}"),
    "control on IPv6": cell("control: {host: '::', port: 0}"),
    "control on every address": cell("control: {host: '', port: 0}"),
    "control by a name": cell("control: {host: robot.example, port: 0}"),
    "state": cell("state: {host: 0.0.0.0, port: 0}"),
    "bench.hmi_link": cell(link="host: 0.0.0.0, status: {port: 0}"),
    "bench.hmi_link.status": cell(link="port: 0, status: {host: 0.0.0.0}"),
}


@pytest.mark.parametrize("door", ELSEWHERE)
def test_a_door_on_another_address_needs_a_token(
    door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UNDERSTUDY_TOKEN", raising=False)
    with pytest.raises(ConfigError) as refused:
        run(ELSEWHERE[door], nothing)
    for word in (door.split()[0], "`token`", "UNDERSTUDY_TOKEN", "16 characters", "127.0.0.1"):
        assert word in str(refused.value)


@pytest.mark.parametrize("door", ["control", "state", "bench.hmi_link", "bench.hmi_link.status"])
def test_a_short_token_is_refused_and_not_shown(door: str) -> None:
    with pytest.raises(ConfigError, match="16 or more") as refused:
        run(f"token: {'x7' * 7}\n{ELSEWHERE[door]}", nothing)
    assert "x7" not in str(refused.value)


def test_a_short_token_is_refused_on_loopback_too() -> None:
    """It would open control to every user of the machine."""
    with pytest.raises(ConfigError, match="16 or more"):
        run(cell("token: short"), nothing)


def test_a_state_socket_that_is_not_opened_needs_no_token() -> None:
    run(ELSEWHERE["state"], nothing, hmi=False)


@pytest.mark.parametrize("where", ["file", "environment"])
def test_with_a_token_clients_give_it_or_the_secret(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNDERSTUDY_TOKEN", TOKEN if where == "environment" else "")
    head = "control: {host: 0.0.0.0, port: 0}\n" + (f"token: {TOKEN}" if where == "file" else "")

    async def scene(live: Live) -> None:
        assert (await ask(live, do="now", secret=TOKEN))["ok"]
        assert (await ask(live, do="now", secret=live.secret))["ok"]
        assert (await ask(live, do="now", secret="x"))["ok"] is False
        assert (await ask(live, do="now"))["ok"] is False

    run(cell(head), scene)


@pytest.mark.parametrize("key", ["token", "secret"])
def test_the_link_and_its_status_on_another_address(key: str) -> None:
    """The status socket asks for the password by PLAIN; a subscriber without one gets nothing."""

    async def scene(live: Live) -> None:
        assert live.with_password == {STATUS}
        given = TOKEN if key == "token" else live.secret
        stranger = CellLink(live.endpoints[LINK], live.endpoints[STATUS], timeout_s=PATIENCE_S)
        guesser = CellLink(live.endpoints[LINK], live.endpoints[STATUS], status_password="x" * 20)
        panel = CellLink(
            live.endpoints[LINK], live.endpoints[STATUS], secret=given, status_password=given
        )
        for link in (stranger, guesser, panel):
            await link.start()
        with pytest.raises(LinkError, match="secret") as refused:
            await stranger.call("now", role="viewer")
        assert refused.value.code == 3
        assert (await panel.call("now", role="viewer"))["rate"] == 1.0
        await first_status(panel)
        assert (stranger.status, guesser.status) == ({}, {})
        assert panel.status["robot"] == "bench"
        for link in (stranger, guesser, panel):
            await link.stop()

    link = "host: 0.0.0.0, status: {host: 0.0.0.0}"
    run(cell(f"token: {TOKEN}", link), scene)


def test_on_loopback_plain_panels_work_unchanged() -> None:
    async def scene(live: Live) -> None:
        assert live.with_password == set()
        panel = CellLink(live.endpoints[LINK], live.endpoints[STATUS])
        await panel.start()
        assert (await panel.call("rate", {"rate": 2.0}, role="operator"))["rate"] == 2.0
        await first_status(panel)
        await panel.stop()

    run(cell(f"token: {TOKEN}"), scene)


@pytest.mark.parametrize("door", ["control", "state"])
def test_a_client_that_says_nothing_is_disconnected(
    door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On wall time, by the doors' own pump."""
    monkeypatch.setattr(doors, "FIRST_REQUEST_TIME", 1)

    async def scene(live: Live) -> None:
        host, _, port = live.endpoints[door].removeprefix("tcp://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()

    run(cell(), scene)


# ── loopback without a secret ──


@pytest.mark.parametrize("door", ["control", "state"])
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "robot.example"])
def test_auth_none_is_for_loopback_only(door: str, host: str) -> None:
    with pytest.raises(ConfigError, match=rf"cell.yaml:1: {door}.auth") as refused:
        read_config(cell(f"{door}: {{auth: none, host: '{host}'}}"), "cell.yaml")
    assert "on 127.0.0.1, ::1 or localhost only" in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_auth_none_switches_the_secret_off(host: str) -> None:
    async def scene(live: Live) -> None:
        assert (await ask(live, do="now"))["ok"]
        feed = StateFeed(live.endpoints["state"])
        await feed.start()
        with feed.subscribed() as listener:
            assert await listener.take()
        await feed.stop()

    run(cell(f"control: {{auth: none, host: '{host}'}}\nstate: {{auth: none}}"), scene)


def test_the_state_socket_needs_the_secret() -> None:
    async def scene(live: Live) -> None:
        stranger = StateFeed(live.endpoints["state"])
        page = StateFeed(live.endpoints["state"], secret=live.secret)
        await stranger.start()
        await page.start()
        with stranger.subscribed() as outside, page.subscribed() as inside:
            assert await inside.take()
            assert outside.is_idle
        await stranger.stop()
        await page.stop()

    run(cell(), scene)


def test_auth_none_keeps_the_port() -> None:
    head = read_config(cell("control: {auth: none}\nstate: {auth: none}"), "cell.yaml").head
    assert (head.control.port, head.state.port) == (5550, 5562)


# ── REAL robots ──


def test_orders_to_a_real_robot_need_the_secret_at_every_door() -> None:
    real = "    real: {to: '127.0.0.1:9'}\n"

    async def scene(live: Live) -> None:
        panel = CellLink(live.endpoints[LINK], live.endpoints[STATUS])
        page = CellLink(live.endpoints[LINK], live.endpoints[STATUS], secret=live.secret)
        await panel.start()
        await page.start()

        async def refused(command: str, **parameters: Any) -> None:
            with pytest.raises(LinkError, match="REAL robot") as problem:
                await panel.call(command, parameters, role="operator")
            assert problem.value.code == 3
            answer = await ask(live, do=command, **parameters)
            assert (answer["ok"], answer["code"]) == (False, 3)

        assert await panel.call("home", {"robot": "bench"}, role="operator")  # simulated
        await panel.call("stop", {}, role="operator")
        await panel.call("start", {}, role="operator")
        await refused("set_mode", robot="bench", mode="real")
        mode = {"robot": "bench", "mode": "real"}
        assert (await page.call("set_mode", mode, role="operator"))["mode"] == "REAL"
        for command in ("home", "enable", "quit", "set_mode"):
            await refused(command, robot="bench", mode="simulation")
        assert await panel.call("robots", role="viewer")
        assert await panel.call("emergency_stop", {}, role="operator")
        assert (await ask(live, do="emergency_stop"))["ok"]
        assert (await ask(live, do="set_mode", secret=live.secret, **mode))["ok"]
        await panel.stop()
        await page.stop()

    run(cell("control: {auth: none, port: 0}", robot=real), scene, real=True)


KEYS = Keys("the-secret", "token-of-the-cell")


@pytest.mark.parametrize(
    ("keys", "page", "token"),
    [
        (KEYS, Hmi(), None),
        (KEYS, Hmi(token="of-the-page"), "of-the-page"),
        (KEYS, Hmi(host="0.0.0.0"), "token-of-the-cell"),
        (KEYS, Hmi(host="0.0.0.0", token="of-the-page"), "of-the-page"),
        (Keys("the-secret"), Hmi(host="0.0.0.0"), None),
        (Keys("the-secret", real=True), Hmi(), "the-secret"),
        (Keys("the-secret", real=True), Hmi(token="of-the-page"), "of-the-page"),
    ],
)
def test_the_token_of_the_page(
    keys: Keys, page: Hmi, token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UNDERSTUDY_TOKEN", raising=False)
    monkeypatch.delenv("UNDERSTUDY_HMI_TOKEN", raising=False)
    assert keys.for_page(page) == token


def test_no_text_of_the_options_shows_the_secret() -> None:
    options = Options()
    assert len(options.secret) >= 43
    assert options.secret != Options().secret
    assert options.secret not in repr(options)
    assert "the-secret" not in repr(KEYS)
