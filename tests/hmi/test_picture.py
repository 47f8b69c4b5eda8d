"""What all browsers are shown, and how a robot stands in it."""

import asyncio
import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.hmi.link import LinkError
from understudy.hmi.pages import picture as module
from understudy.hmi.pages.picture import EVENTS_KEPT, Picture
from understudy.hmi.pages.standing import Alarm, alarms, standing


class Cell:
    """`Caller`: a cell of two robots that counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gone = False
        self.events: list[dict[str, Any]] = []
        self.status: Mapping[str, Any] = {"robots": {"g60": {"state": "Run", "line": 7}}}

    async def call(
        self, command: str, parameters: dict[str, Any] | None = None, *, role: str
    ) -> Any:
        assert (command, role) == ("glance", "viewer")
        if self.gone:
            raise LinkError(21, "no cell answers")
        return [self.answer(**question) for question in (parameters or {})["questions"]]

    def answer(self, command: str, parameters: dict[str, Any]) -> Any:
        self.asked.append(command)
        given = parameters
        answers = {
            "robots": {"robots": [robot("g60", "io"), robot("bench")]},
            "events": {
                "events": [e for e in self.events if e["number"] > given.get("since", 0)],
                "last": self.events[-1]["number"] if self.events else 0,
            },
            "faults": {"overheat": {}},
            "io": {"of": given.get("robot")},
        }
        return answers.get(command, {})


def robot(name: str, *skills: str) -> dict[str, Any]:
    return {"name": name, "capabilities": list(skills), "error": ""}


def event(number: int, text: str = "") -> dict[str, Any]:
    return {"number": number, "kind": "alarm", "robot": "g60", "text": text, "what_to_do": "wait"}


def test_one_round_serves_all_browsers() -> None:
    cell = Cell()
    picture = Picture(cell)

    async def three_browsers() -> None:
        await picture.refresh()
        cell.asked.clear()
        for _ in range(3):
            picture.watch("g60")
        await asyncio.sleep(0.05)
        for _ in range(3):
            picture.leave("g60")

    asyncio.run(three_browsers())
    assert cell.asked.count("robots") == 1
    assert cell.asked.count("io") == 1
    assert picture.alive
    assert picture.pins["g60"] == {"of": "g60"}
    assert picture.view("g60")["line"] == 7


def test_who_follows_is_told_when_something_changed_and_only_then() -> None:
    cell = Cell()
    picture = Picture(cell)
    told: list[int] = []
    leave = picture.on_change(lambda: told.append(len(picture.events)))
    for _ in range(3):
        asyncio.run(picture.refresh())
    cell.events = [event(1)]
    asyncio.run(picture.refresh())
    assert told == [0, 1]
    cell.gone = True
    asyncio.run(picture.refresh())
    assert len(told) == 3, "nothing new comes any more: that is news"
    leave()
    cell.gone = False
    asyncio.run(picture.refresh())
    assert len(told) == 3


def test_one_who_fails_leaves_the_others_fresh() -> None:
    picture = Picture(Cell())
    told: list[str] = []
    picture.on_change(lambda: 1 / 0)
    picture.on_change(lambda: told.append("fresh"))
    asyncio.run(picture.refresh())
    assert told == ["fresh"]


def test_a_question_that_is_refused_leaves_the_others_answered() -> None:
    cell = Cell()
    picture = Picture(cell)
    asyncio.run(picture.refresh())
    answer = cell.answer
    cell.answer = (  # type: ignore[method-assign]
        lambda command, parameters: None if command == "robots" else answer(command, parameters)
    )
    cell.events = [event(1)]
    asyncio.run(picture.refresh())
    assert picture.alive
    assert list(picture.robots) == ["g60", "bench"]
    assert len(picture.events) == 1


def test_after_an_order_the_next_round_comes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROUND_SECONDS", math.inf)
    cell = Cell()
    picture = Picture(cell)

    async def look() -> None:
        rounds = asyncio.Event()
        picture.on_change(rounds.set)
        picture.watch("g60")
        await rounds.wait()
        rounds.clear()
        cell.events = [event(1)]
        picture.hurry()
        await rounds.wait()
        picture.leave("g60")

    asyncio.run(asyncio.wait_for(look(), 60.0))


def test_a_robot_without_pins_is_not_asked_for_them() -> None:
    cell = Cell()
    picture = Picture(cell)
    picture._watchers["bench"] = 1
    asyncio.run(picture.refresh())
    assert "io" not in cell.asked


def test_a_cell_that_is_gone_leaves_the_last_picture_and_says_so() -> None:
    cell = Cell()
    picture = Picture(cell)
    asyncio.run(picture.refresh())
    cell.gone = True
    asyncio.run(picture.refresh())
    assert not picture.alive
    assert list(picture.robots) == ["g60", "bench"]


def test_events_are_heard_once_and_a_new_cells_from_the_beginning() -> None:
    cell = Cell()
    picture = Picture(cell)
    cell.events = [event(1), event(2)]
    for _ in range(3):
        asyncio.run(picture.refresh())
    assert [e["number"] for e in picture.events] == [1, 2]
    cell.events = [event(1, "anew")]
    for _ in range(2):
        asyncio.run(picture.refresh())
    assert [e["text"] for e in picture.events] == ["anew"]


def test_events_are_bounded() -> None:
    cell = Cell()
    picture = Picture(cell)
    cell.events = [event(n) for n in range(1, 3 * EVENTS_KEPT)]
    asyncio.run(picture.refresh())
    assert len(picture.events) == EVENTS_KEPT


@pytest.mark.parametrize(
    ("facts", "view", "word", "mood"),
    [
        ({"state": "Idle"}, {}, "Idle", "calm"),
        ({"state": "Idle"}, {"state": "Run"}, "Run", "busy"),
        ({}, {"state": "Hold:0"}, "Hold", "held"),
        ({"error": "emergency stop"}, {"state": "Idle"}, "Idle", "alarm"),
        ({}, {"state": "Alarm"}, "Alarm", "alarm"),
        ({}, {"state": "EmergencyStopped"}, "EmergencyStopped", "alarm"),
        ({}, {}, "Unknown", "off"),
    ],
)
def test_how_a_robot_stands(
    facts: dict[str, Any], view: dict[str, Any], word: str, mood: str
) -> None:
    found = standing(facts, view)
    assert (found.word, found.mood) == (word, mood)


@given(st.text(), st.text())
def test_whatever_a_robot_calls_its_state_it_stands_somehow(said: str, known: str) -> None:
    assert standing({"state": known}, {"state": said}).word


def test_alarms_come_with_what_to_do() -> None:
    robots = {"g60": {"error": "emergency stop"}, "bench": {"error": ""}}
    parts = {"g60.welder": {"fault": "gas", "reason": "no gas"}}
    events = [event(1, "emergency stop"), event(2, "weld fault: no gas")]
    assert alarms(robots, parts, events) == [
        Alarm("g60", "emergency stop", "wait"),
        Alarm("g60", "weld fault: no gas", "wait"),
    ]
    assert alarms({"bench": {"error": ""}}, {}, events) == []


def test_a_weld_fault_that_ends_a_program_is_one_alarm() -> None:
    robots = {"g60": {"error": "line 15: weld fault: no gas"}}
    parts = {"g60.welder": {"fault": "gas", "reason": "no gas"}}
    events = [event(1, "line 15: weld fault: no gas")]
    assert alarms(robots, parts, events) == [Alarm("g60", "line 15: weld fault: no gas", "wait")]
