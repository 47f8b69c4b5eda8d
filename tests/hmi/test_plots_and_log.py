"""HMI Integration: plots, log and alarms in a browser, with a cell that has an open wire."""

import socket
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.browsers import TIMEOUT_SECONDS, RunningCell, Screen
from tests.hmi.test_hmi_integration import legible

CELLS = files("understudy").joinpath("catalog/cells")
SEAM = files("understudy").joinpath("catalog/programs/seam.gcode").read_text()
MIN_PERIOD_MS = 100
"""Between two queries."""


@pytest.fixture(scope="module")
def cell_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The welding cell, and the text robot beside it."""
    cell = CELLS.joinpath("g60_welding.yaml").read_text()
    bench = "  bench: {kind: text_robot, faces: {text_tcp: {port: 5000}}}"
    cell = cell.replace("environment:", f"{bench}\nenvironment:")
    path = tmp_path_factory.mktemp("cells") / "both.yaml"
    path.write_text(cell)
    return path


@pytest.fixture(scope="module")
def cell(cell_file: Path, start_cell: Callable[[str], RunningCell]) -> RunningCell:
    cell = start_cell(str(cell_file))
    cell.ask("enable", robot="g60")
    cell.ask("load_program", robot="g60", text=SEAM, name="seam.gcode")
    return cell


@pytest.fixture(scope="module")
def opened(cell: RunningCell, open_page: Callable[..., Screen]) -> Iterator[Screen]:
    """One page, on which tests open what they need; it must have no errors and no foreign
    requests."""
    screen = open_page(cell, "/plots")
    yield screen
    assert screen.errors == []
    assert all(urlsplit(url).netloc == urlsplit(cell.url).netloc for url in screen.requests)


@pytest.fixture
def plots(opened: Screen, cell: RunningCell) -> Screen:
    return at_address(opened, f"{cell.url}/plots")


@pytest.fixture
def log(opened: Screen, cell: RunningCell) -> Screen:
    return at_address(opened, f"{cell.url}/log")


def at_address(screen: Screen, address: str) -> Screen:
    if screen.page.url != address:
        screen.open(address)
    return screen


@pytest.fixture(scope="module")
def lost_arc(cell: RunningCell) -> None:
    """The events of a weld whose arc was lost."""
    if not any("weld fault" in event["text"] for event in cell.ask("events")["events"]):
        weld(cell)
        cell.ask("inject", fault="arc_fault", on="g60.welder")
        until_welder(cell, "fault")
        cell.ask("reset")


def weld(cell: RunningCell) -> None:
    """Runs the program until the arc burns, unless it runs already."""
    if cell.ask("program", robot="g60")["state"] != "running":
        cell.ask("run_program", robot="g60")
    until_welder(cell, "arc_on")


def until_welder(cell: RunningCell, field: str) -> None:
    end = time.monotonic() + TIMEOUT_SECONDS
    while not cell.ask("status")["parts"]["g60.welder"][field]:
        assert time.monotonic() < end, f"timeout: {field} of the welder"
        time.sleep(0.05)


def record(screen: Screen) -> dict[str, Any]:
    found: dict[str, Any] = screen.page.evaluate("window.log.report()")
    return found


def kinds(screen: Screen) -> set[str]:
    return {row["kind"] for row in record(screen)["shown"]}


def filter_(screen: Screen, kind: str) -> None:
    screen.page.locator(f'[data-kind="{kind}"]').click()


# ── plots ──


def test_plots_show_joints_torques_and_current_while_the_program_runs(
    cell: RunningCell, plots: Screen
) -> None:
    screen = plots
    screen.page.wait_for_function("window.plots.report().rows > 0")
    cell.ask("run_program", robot="g60")

    def curves() -> dict[str, Any]:
        found: dict[str, Any] = screen.page.evaluate("window.plots.report().plots")
        return found

    def most(plot: str) -> float:
        return float(max(series["most"] for series in curves()[plot]))

    screen.until(lambda: curves()["devices"][0]["most"] > 50.0, "the weld current")
    assert most("positions") > 10.0
    screen.until(lambda: most("velocities") > 0.1, "motion of the torch")
    assert most("torques") > 1.0
    assert [series["name"] for series in curves()["positions"]] == [f"J{n}" for n in range(1, 7)]
    assert [series["name"] for series in curves()["devices"]] == ["Current A", "Voltage V"]
    assert curves()["velocities"][-1]["name"] == "Tool mm/s"
    assert curves()["velocities"][-1]["most"] > 1.0
    assert screen.page.locator(".u-chart canvas").count() == 4


def test_plots_show_what_happened_while_no_page_was_open(cell: RunningCell, opened: Screen) -> None:
    screen = opened
    screen.page.goto("about:blank")
    cell.ask("stop_program", robot="g60")
    cell.ask("reset")
    begin = cell.ask("metrics")["simulation_time_s"]
    cell.ask("enable", robot="g60")
    cell.ask("run_program", robot="g60")
    cell.ask("advance", seconds=20.0)
    cell.ask("stop_program", robot="g60")
    screen.open(f"{cell.url}/plots")
    screen.page.wait_for_function("window.plots.report().rows > 100")
    found = screen.page.evaluate("window.plots.report()")
    assert found["plots"]["devices"][0]["most"] > 50.0, "the weld current"
    assert found["first"] is not None
    rows = cell.ask("sample", robot="g60", seconds_back=60.0, count=12000)["rows"]
    assert len([row for row in rows if begin < row["time_s"] < begin + 10.0]) > 100


def test_a_gap_is_not_joined(cell: RunningCell, plots: Screen) -> None:
    """The joints are set at once: a jump, which no line joins."""
    screen = plots
    screen.page.wait_for_function("window.plots.report().rows > 0")
    before = cell.ask("sample", robot="g60", count=1)["rows"][-1]["joints_deg"]
    cell.ask("set_joint_positions", robot="g60", joints_deg=[before[0] + 20, *before[1:]])
    screen.until(lambda: gaps(screen) >= 1, "a gap in every curve")
    cell.ask("set_joint_positions", robot="g60", joints_deg=before)


def gaps(screen: Screen) -> int:
    """The smallest number of gaps of a curve of the joints."""
    return int(min(screen.page.evaluate(GAPS)))


GAPS = "window.plots.report().plots.positions.map(({ gaps }) => gaps)"


@pytest.mark.parametrize(
    ("kind", "begins"),
    [("csv", b"time_s,gap,positions_J1_"), ("png", b"\x89PNG"), ("svg", b"<svg ")],
)
def test_plots_are_exported(plots: Screen, tmp_path: Path, kind: str, begins: bytes) -> None:
    screen = plots
    screen.page.wait_for_function("window.plots.report().rows > 10")
    with screen.page.expect_download() as started:
        screen.page.locator(f'[data-export="{kind}"]').click()
    file = tmp_path / started.value.suggested_filename
    started.value.save_as(file)
    assert file.suffix == f".{kind}"
    content = file.read_bytes()
    assert content.startswith(begins)
    if kind == "csv":
        names, *lines = content.decode().splitlines()
        assert {"devices_current_amps_A", "velocities_tool_mm/s"} <= set(names.split(","))
        assert {len(line.split(",")) for line in lines} == {len(names.split(","))}
    if kind == "svg":
        assert content.count(b"<svg ") == 1 + screen.page.locator(".u-chart:visible").count()


ASKED = """performance.getEntriesByType("resource")
  .filter(({ name }) => name.includes("/api/sample")).map(({ startTime }) => startTime)"""


def test_plots_request_rows_at_a_limited_rate(plots: Screen) -> None:
    screen = plots
    screen.page.evaluate("performance.clearResourceTimings()")  # an export queries, too
    screen.until(lambda: len(screen.page.evaluate(ASKED)) > 4, "some questions")
    asked = screen.page.evaluate(ASKED)
    assert min(later - earlier for earlier, later in pairwise(asked)) >= MIN_PERIOD_MS


def test_a_hidden_page_requests_nothing(plots: Screen) -> None:
    screen = plots
    screen.page.wait_for_function("window.plots.report().rows > 0")
    assert screen.page.evaluate(HIDDEN) == 0
    screen.page.goto("about:blank")


HIDDEN = """async () => {
  let asked = 0;
  const fetch_ = window.fetch;
  window.fetch = (...given) => (asked += 1, fetch_(...given));
  Object.defineProperty(document, "hidden", { get: () => true });
  await new Promise((later) => setTimeout(later, 600));
  return asked;
}"""


# ── log and alarms ──


def test_the_log_page_shows_where_clients_connect(cell: RunningCell, log: Screen) -> None:
    address = cell.endpoints["bench.text_tcp"]
    log.until(lambda: address in log.text("addresses"), "the addresses")
    assert "bench.text_tcp" in log.text("addresses")
    assert legible(log)


def test_an_arc_fault_becomes_an_alarm_with_advice(cell: RunningCell, log: Screen) -> None:
    weld(cell)
    log.until(lambda: "welder" in kinds(log), "the welder's phases")
    cell.ask("inject", fault="arc_fault", on="g60.welder")
    log.until(lambda: "weld fault" in log.text("alarms"), "the alarm")
    log.until(lambda: "look at wire, gas and distance" in log.text("alarms"), "what to do")
    log.until(lambda: "alarm" in kinds(log), "its event")
    assert legible(log)
    log.at("alarms").get_by_text("Reset", exact=True).first.click()
    log.until(lambda: "no alarm" in log.text("alarms"), "an end of it")


@pytest.mark.usefixtures("lost_arc")
def test_the_log_is_filtered_by_kind_place_and_text(cell: RunningCell, log: Screen) -> None:
    log.until(lambda: "welder" in kinds(log), "the welder's phases")
    assert "traffic" not in kinds(log)
    send(cell, b"GET_POS\n", b"GET_STATUS\n")
    filter_(log, "traffic")
    log.until(lambda: "traffic" in kinds(log), "wire traffic")
    for kind in ("welder", "state", "program"):
        filter_(log, kind)
    assert not {"welder", "state", "program"} & kinds(log)
    choose_place(log, "bench.text_tcp")
    assert kinds(log) == {"traffic"}
    log.page.locator("[data-log=search]").fill("get_pos")
    found = [row["text"] for row in record(log)["shown"]]
    assert found
    assert all("→ GET_POS\\n" in text for text in found)
    log.page.locator("[data-log=search]").fill("")
    choose_place(log, "")
    for kind in ("welder", "state", "program", "traffic"):
        filter_(log, kind)
    assert "welder" in kinds(log)


def choose_place(log: Screen, place: str) -> None:
    list_ = log.page.locator("[data-log=where]")
    list_.locator(".u-choice-button").click()
    list_.locator(f'[data-value="{place}"]').click()


def send(cell: RunningCell, *lines: bytes) -> None:
    address = urlsplit(cell.ask("status")["endpoints"]["bench.text_tcp"])
    with socket.create_connection((address.hostname, address.port), timeout=60) as line:
        for each in lines:
            line.sendall(each)
            assert line.recv(4096)


@pytest.mark.usefixtures("lost_arc")
def test_the_log_in_vietnamese(log: Screen) -> None:
    screen = log
    with screen.page.expect_navigation():
        screen.press("language-vi")
    screen.built()
    assert "Cảnh báo" in screen.text("alarms")
    screen.until(
        lambda: any("Mất hồ quang" in row["text"] for row in record(screen)["shown"]), "advice"
    )
    with screen.page.expect_navigation():
        screen.press("language-en")
    screen.built()
