"""`run` and the page's process: it starts and ends with the cell, and is restarted."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest
from tests.processes import command_lines

from understudy.cli import hmi
from understudy.cli.check import check
from understudy.config import Hmi, load_config, shipped_cells
from understudy.errors import ConfigError

PATIENCE_SECONDS = 60.0
CELL = """\
hmi: {port: 0}
robots:
  bench: {kind: text_robot}
"""

Start = Callable[..., "Running"]


class Running:
    """`understudy run` of a small cell with a page."""

    def __init__(
        self, folder: Path, *words: str, ephemeral: bool = True, **environment: str
    ) -> None:
        self.ready_file = folder / "ready.json"
        run = [sys.executable, "-m", "understudy", "run", *(["--ephemeral"] if ephemeral else [])]
        self.process = subprocess.Popen(
            [*run, "--ready-file", str(self.ready_file), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "XDG_RUNTIME_DIR": str(folder), **environment},
        )

    def ready(self, until: Callable[[Any], bool] = lambda ready: True) -> Any:
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            if self.ready_file.exists() and until(ready := json.loads(self.ready_file.read_text())):
                return ready
            time.sleep(0.02)
        raise AssertionError(self.end())

    def page(self) -> str:
        address: str = self.ready(lambda ready: "hmi" in ready["endpoints"])["endpoints"]["hmi"]
        return address

    def child(self) -> psutil.Process:
        """The page's process."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            for child, line in command_lines(self.process.pid).items():
                if "understudy.hmi" in line:
                    return child
            time.sleep(0.02)
        raise AssertionError("there is no page's process")

    def end(self) -> tuple[int, str]:
        self.process.terminate()
        _, said = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, said.decode()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    (tmp_path / "cell.yaml").write_text(CELL)
    running: list[Running] = []

    def begin(*words: str, **options: Any) -> Running:
        running.append(Running(tmp_path, str(tmp_path / "cell.yaml"), *words, **options))
        return running[-1]

    yield begin
    for each in running:
        if each.process.poll() is None:
            each.end()
        for stream in (each.process.stdout, each.process.stderr):
            if stream is not None:
                stream.close()


def get(address: str, **headers: str) -> Any:
    with urlopen(Request(address, headers=headers), timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)


def test_the_page_process_starts_is_restarted_and_ends_with_the_cell(
    start: Start,
) -> None:
    cell = start()
    assert cell.ready()["starting"] == ["hmi"]
    page = cell.page()
    assert cell.ready()["starting"] == []
    before = get(f"{page}/api/now")["now_s"]

    first = cell.child()
    first.kill()
    first.wait(PATIENCE_SECONDS)
    assert get(f"{page}/api/now")["now_s"] > before, "who calls meanwhile waits and is answered"
    second = cell.child()
    assert second.pid != first.pid

    code, said = cell.end()
    assert code == 0
    assert "started again" in said
    assert not second.is_running()


def test_hmi_forces_a_page_that_ends_when_the_cell_is_killed(start: Start, tmp_path: Path) -> None:
    (tmp_path / "cell.yaml").write_text(CELL.partition("\n")[2])
    cell = start("--hmi")
    assert cell.page().startswith("http://127.0.0.1:")
    child = cell.child()
    cell.process.send_signal(signal.SIGKILL)
    child.wait(PATIENCE_SECONDS)


def test_no_hmi_starts_no_page_process(start: Start) -> None:
    cell = start("--no-hmi")
    ready = cell.ready()
    assert ready["starting"] == []
    assert ready["endpoints"].keys() == {"control"}


def test_a_taken_port_is_replaced_by_a_free_one(start: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "cell.yaml").write_text(CELL.replace("port: 0", f"port: {port}"))
        cell = start("--port", "control=0", "--port", "state=0", ephemeral=False)
        page = cell.page()
        code, said = cell.end()
    assert code == 0
    assert f"port {port} is in use; the page is on {page.rpartition(':')[2]}" in said


def test_a_run_that_ends_with_its_program_has_no_page(start: Start, tmp_path: Path) -> None:
    (tmp_path / "cell.yaml").write_text("hmi: {port: 0}\nrobots: {arm: {kind: arm}}\n")
    (tmp_path / "short.nc").write_text("G4 P0.1\n")
    cell = start("--program", str(tmp_path / "short.nc"), "--exit")
    out, _ = cell.process.communicate(timeout=PATIENCE_SECONDS)
    assert cell.process.returncode == 0
    assert b"Page" not in out
    assert b"hmi_link" not in out


@pytest.mark.parametrize("name", list(shipped_cells()))
def test_every_shipped_cell_has_a_page_and_work_for_each_robot(name: str) -> None:
    config = load_config(name)
    assert config.head.hmi is not None
    able = [robot for robot in config.robots.values() if robot.kind != "mobile"]
    # Mobile robots are commanded over NATS.
    sections = [robot.sections for robot in able if not robot.program]
    assert all("pickplace" in each or "hand_eye" in each for each in sections)


def test_tokens_come_from_the_environment_and_are_on_no_command_line(start: Start) -> None:
    tokens = {
        "UNDERSTUDY_HMI_TOKEN": "hush-hush-of-operators",
        "UNDERSTUDY_HMI_VIEWER_TOKEN": "look-only-of-viewers",
    }
    cell = start(**tokens)
    page = cell.page()
    with pytest.raises(HTTPError, match="401"):
        get(f"{page}/api/now")
    assert get(f"{page}/api/now", Authorization="Bearer look-only-of-viewers")["rate"] == 1.0
    stop = Request(f"{page}/api/stop", b"{}", {"Authorization": "Bearer look-only-of-viewers"})
    with pytest.raises(HTTPError, match="403"):
        urlopen(stop, timeout=PATIENCE_SECONDS)
    assert "hush" not in " ".join(cell.child().cmdline())


def test_another_address_without_a_token_exits_with_2_and_a_hint(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "cell.yaml").write_text(CELL.replace("port: 0", "host: 0.0.0.0"))
    cell = start()
    _, said = cell.process.communicate(timeout=PATIENCE_SECONDS)
    assert cell.process.returncode == 2
    assert "UNDERSTUDY_HMI_TOKEN" in said.decode()


def test_a_missing_package_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hmi.missing_extra() is None
    monkeypatch.setattr(
        hmi, "find_spec", lambda name: None if name == "nicegui" else find_spec(name)
    )
    said = hmi.missing_extra()
    assert said
    assert "\n" not in said
    assert "needs understudy[hmi]: " in said
    assert "install 'nicegui<4,>=3.18' pyzmq" in said


@pytest.mark.parametrize(
    ("ports", "pair"),
    [
        ("hmi: {port: 5550}", "control and hmi"),
        ("hmi: {}\nstate: {port: 8080}", "state and hmi"),
        ("hmi: {}\ncontrol: {port: 5562}", "control and state"),
    ],
)
def test_a_page_on_the_port_of_another_endpoint_is_an_error(
    ports: str, pair: str, tmp_path: Path
) -> None:
    file = tmp_path / "cell.yaml"
    file.write_text(f"{ports}\nrobots: {{bench: {{kind: text_robot}}}}\n")
    with pytest.raises(ConfigError, match=f"{pair} listen on the same port"):
        check(str(file))


def test_the_page_process_can_be_stopped_while_it_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hmi, "CLOSING_SECONDS", PATIENCE_SECONDS)
    nowhere = dict.fromkeys(("hmi_link", "hmi_link.status", "state"), "tcp://127.0.0.1:9")

    async def start_and_stop() -> int | None:
        page = hmi.PageProcess(Hmi(), 0, hmi.Keys("secret"))
        page.start(nowhere, lambda: None)
        while page.pid is None:  # noqa: ASYNC110 - only the system knows it
            await asyncio.sleep(0.01)
        try:
            return await page.stop()
        finally:
            page.close()

    assert asyncio.run(start_and_stop()) == 0


def test_a_page_that_is_not_there_yet_answers_browsers_and_supervisors() -> None:
    def status_of(address: str) -> tuple[int, str, str]:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as visitor:
            visitor.sendall(f"GET {address} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            head, _, body = b"".join(iter(lambda: visitor.recv(65536), b"")).partition(b"\r\n\r\n")
        return int(head.split()[1]), head.decode(), body.decode()

    async def visit() -> list[tuple[int, str, str]]:
        async with page.notice() as change:
            change("compiling 43 of 264 kernels")
            addresses = ("/fleet?robot=r1", "/health", "/ready", "/metrics")
            return [await asyncio.to_thread(status_of, each) for each in addresses]

    page = hmi.PageProcess(Hmi(), 0, hmi.Keys("secret"))
    port = int(page.address.rsplit(":", 1)[1].strip("/"))
    try:
        shown, *monitoring = asyncio.run(visit())
    finally:
        page.close()
    assert shown[0] == 503
    assert "Refresh: 2" in shown[1], "a browser loads it again"
    assert "compiling 43 of 264 kernels" in shown[2]
    assert [code for code, _, _ in monitoring] == [200, 503, 503]
    for _, head, body in monitoring:
        assert "application/json" in head
        assert json.loads(body)["status"] == "starting"
