"""The page of tasks in the documentation says what the code does."""

import re
from pathlib import Path

from understudy.robots.mobile.config.fleet_keys import PlannerConfig
from understudy.robots.mobile.planner.grid import LEAST_MARGIN, MARGIN
from understudy.robots.mobile.runtime.messages import EVENTS
from understudy.robots.mobile.runtime.tasks import (
    DEADLINE_NS,
    ERRORS,
    NEAR,
    NEEDED,
    QUEUE,
    REMEMBERED,
    REQUESTS,
)
from understudy.units import NS_PER_SECOND

PAGE = (Path(__file__).parents[4] / "docs/robots/mobile_tasks.md").read_text()
WORDS = " ".join(PAGE.split())


def test_the_table_of_error_codes_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| ([A-Z_]+) \| (.+) \|$", PAGE.partition("| errorCode")[2], re.MULTILINE)
    assert dict(rows) == ERRORS


def test_the_table_of_steps_has_all_of_them() -> None:
    rows = re.findall(r"^\| (\w+) \| (.+?) \| .+ \|$", PAGE.partition("### Steps")[2], re.MULTILINE)
    for kind, keys in NEEDED.items():
        assert all(f"`{key}`" in dict(rows)[kind] for key in keys)


def test_events_of_the_page_are_known() -> None:
    named = set(re.findall(r"events? `?((?:task|route|traffic)[.a-z]+)", PAGE))
    assert named <= set(EVENTS)
    assert len(named) == 7


def test_figures_of_the_page_are_those_of_the_code() -> None:
    assert f"{QUEUE} tasks may wait" in WORDS
    assert f"last {REMEMBERED} that ended" in WORDS
    assert PAGE.count(f"{DEADLINE_NS // NS_PER_SECOND} s without an answer") == REQUESTS
    assert f"within {NEAR * 100:.0f} cm" in WORDS
    assert f"grace time: {PlannerConfig().grace_s:g} s" in WORDS
    assert f"`obstacleStopDistanceMeters` + {MARGIN:g} m" in WORDS
    assert f"half its diagonal + {LEAST_MARGIN:g} m" in WORDS
