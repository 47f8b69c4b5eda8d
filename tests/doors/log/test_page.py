"""The time line in a browser: a collision, its mark, scene, plot and journal of that instant; a
fork, whose transcript is that of the original up to there."""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.browsers import RunningCell, Screen

CELL = """
description: an arm and a text robot
robots:
  g60: {kind: arm, model: g60, start_deg: [0, 0, 37, 0, 53, 0]}
  bench: {kind: text_robot, faces: {text_tcp: {port: 0}}}
environment:
  objects:
    - {name: post, type: box, position_mm: [350, 350, 500], dimensions_mm: [100, 100, 1000]}
"""
SECONDS = 120.0


def test_a_collision_is_found_on_the_time_line_and_forked(
    start_cell: Callable[..., RunningCell], open_page: Callable[..., Screen], tmp_path: Path
) -> None:
    file = tmp_path / "cell.yaml"
    file.write_text(CELL)
    cell = start_cell(str(file), "--hmi", "--files", str(tmp_path))
    screen = open_page(cell, "/timeline")

    def report() -> dict[str, Any]:
        found: dict[str, Any] = screen.page.evaluate("window.timeline.report()")
        return found

    def rows() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = cell.ask("recordings")["recordings"]
        return found

    screen.press("timeline-record")
    screen.until(lambda: bool(rows()), "a recording", timeout=SECONDS)
    host, _, port = cell.endpoints["bench.text_tcp"].rpartition("://")[2].rpartition(":")
    with socket.create_connection((host, int(port)), SECONDS) as robot:
        answers = robot.makefile("rb")
        for x in (100, 150):
            robot.sendall(b"MOVE_ABS %d,0,150,0,0,0\n" % x)
            assert answers.readline().startswith(b"OK")
        cell.ask("enable", robot="g60")
        cell.ask("move_to", robot="g60", joints_deg=[90, 0, 37, 0, 53, 0])
        collision: list[dict[str, Any]] = []

        def collided() -> bool:
            events = cell.ask("events")["events"]
            collision[:] = [each for each in events if each["kind"] == "collision"]
            return bool(collision)

        screen.until(collided, "a collision", timeout=SECONDS)
        robot.sendall(b"MOVE_ABS 200,0,150,0,0,0\n")
        assert answers.readline().startswith(b"OK")
        answers.close()
    at_s = collision[0]["time_s"]
    screen.until(lambda: rows()[0]["to_s"] > at_s + 0.5, "the end", timeout=SECONDS)
    screen.press("timeline-record")
    screen.until(lambda: not rows()[0]["running"], "a whole recording", timeout=SECONDS)
    name = rows()[0]["name"]

    screen.page.locator("[data-timeline=marks] [data-kind=collision]").first.click()
    screen.until(lambda: (report()["shown"] or {}).get("at") == at_s, "the mark", timeout=SECONDS)
    then = cell.ask("timeline_at", name=name, at_s=at_s, scene=False)
    q = then["view"]["robots"]["g60"]["q"]
    assert report()["cursor"] == at_s
    slider = screen.page.locator("[data-timeline=slider]")
    screen.until(lambda: abs(float(slider.input_value()) - at_s) < 0.002, "the slider")
    files = screen.page.locator("[data-timeline=files] [data-act=delete]")
    screen.until(lambda: files.count() > 0 and files.first.is_visible(), "the files")
    assert report()["held"]["robots"]["g60"]["q"] == q
    screen.until(lambda: screen.scene["robots"]["g60"]["q"] == q, "the posture", timeout=SECONDS)
    assert screen.scene["red"]
    journal = screen.page.locator("[data-timeline=journal]").inner_text()
    assert "MOVE_ABS 150" in journal
    assert "MOVE_ABS 200" not in journal

    screen.press("timeline-fork")
    screen.until(lambda: bool(report()["forked"]), "the fork", timeout=SECONDS)
    page = report()["forked"]["page"].rstrip("/")
    theirs = messages(page, at_s)
    mine = messages(cell.url, at_s)
    assert len(mine) >= 5
    assert theirs == mine
    assert screen.errors == []


def messages(page: str, until_s: float) -> list[tuple[Any, ...]]:
    """The journal of the text robot before a time; that of the HMI link has who pressed what."""
    headers = {"Content-Type": "application/json"}
    with urlopen(
        Request(f"{page}/api/journal", b'{"endpoint": "bench.text_tcp"}', headers), timeout=SECONDS
    ) as answer:
        found = json.load(answer)["journal"]
    keys = ("time_s", "endpoint", "peer", "kind", "text")
    return [tuple(row[key] for key in keys) for row in found if row["time_s"] < until_s]
