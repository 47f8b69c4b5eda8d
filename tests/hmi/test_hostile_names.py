"""Names of parts, classes, detectors, tasks and codes that are HTML or scripts, on the pages of
jobs and mobile robots: they are shown, and never run."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nats
import pytest
import yaml
from tests.browsers import TIMEOUT_SECONDS, RunningCell, Screen
from tests.hmi.test_hostile_texts import RUN, nothing_ran

from understudy.config.files import find_cell

EVIL = f"\"'><img src=x onerror={RUN}><b class=hostile></b>{{{{{RUN}}}}}"
PAGES = ("/", "/pick_place", "/fleet", "/log", "/plots", "/program")


def cell_of() -> dict[str, Any]:
    """The shipped cell that sorts by class, with an evil class and parts, and mobile robots."""
    cell: dict[str, Any] = yaml.safe_load(find_cell("sorting")[1])
    robot = cell["robots"]["g60"]
    robot["pickplace"]["places"][EVIL] = robot["pickplace"]["places"].pop("cube")
    robot["vision"]["detectors"][0]["classes"][0]["name"] = EVIL
    robot["faces"] = {"hmi_link": {"port": 0, "status": {"port": 0}}}
    for part in cell["parts"]:
        if part["class"] == "cube":
            part |= {"class": EVIL, "name": f"{EVIL}{part['name']}"}
    cell["robots"]["robot-1"] = {"kind": "mobile", "file": "amr.json", "pose": [-3, -3, 0]}
    return cell | {"hmi": {"port": 0}, "nats": {"port": 0}, "description": EVIL}


async def say_evil(address: str) -> None:
    """Messages to the mobile robot with evil names, some of which it answers with an error."""
    client = await nats.connect(address)
    messages = (
        ("command.request", {"commandType": EVIL}),
        ("command.request", {"commandType": "EXECUTE_ACTION", "parameters": {"motorId": EVIL}}),
        ("task.assign", {"taskId": EVIL, "taskType": EVIL}),
        (
            "task.assign",
            {"taskId": EVIL, "taskType": "MOVE_TO_POINT", "moveToPoint": {"x": -3, "y": -3}},
        ),
        ("task.cancel", {"taskId": EVIL}),
        ("settings.desired", {"motors": {EVIL: {"maxSpeed": 1}}, "io": {EVIL: True}}),
        ("traffic.control", {"hold": True, "nodeId": EVIL, "reason": EVIL}),
    )
    for number, (kind, payload) in enumerate(messages):
        whole = {"messageId": f"{EVIL}{number}", "correlationId": EVIL, "payload": payload}
        await client.publish(f"robot.robot-1.{kind}", json.dumps(whole).encode())
    await client.drain()


@pytest.fixture(scope="module")
def cell(
    start_cell: Callable[..., RunningCell], tmp_path_factory: pytest.TempPathFactory
) -> RunningCell:
    file: Path = tmp_path_factory.mktemp("evil") / "evil.yaml"
    file.write_text(yaml.safe_dump(cell_of()))
    started = start_cell(str(file))
    started.ask("enable", robot="g60")
    started.ask("start_pick_place", robot="g60")
    asyncio.run(asyncio.wait_for(say_evil(started.endpoints["nats"]), TIMEOUT_SECONDS))
    return started


def test_no_page_runs_a_name(cell: RunningCell, open_page: Callable[..., Screen]) -> None:
    screen = open_page(cell)
    seen = ""
    for path in PAGES:
        screen.page.goto(cell.url + path)
        screen.built()
        if path in ("/pick_place", "/fleet"):
            screen.until(
                lambda: "class=hostile" in screen.page.locator("body").inner_text(),
                f"a name on {path}",
            )
        for tab in screen.page.locator(".u-page .q-tab").all():
            tab.click()
        nothing_ran(screen.page)
        seen += screen.page.locator("body").inner_text()
    assert "class=hostile" in seen
    assert not screen.errors
