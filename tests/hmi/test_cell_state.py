"""State of the cell for all browsers: refreshes, robot states and alarms."""

import asyncio
import math
from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.hmi.frame import cell_state as module
from understudy.hmi.frame.cell_state import (
    EVENTS_KEPT,
    ActiveAlarm,
    CellState,
    alarms,
    notices,
    of_parts,
    robot_state,
)
from understudy.hmi.link import CellLink, LinkError

ESTOPPED = {"error": "Robot in emergency stop state", "code": 10}
"""The error of a mobile robot whose emergency stop is pressed."""


class Cell:
    """In place of the link: a cell of two robots that records its queries."""

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
            "devices": [],
            "io": {"of": given.get("robot")},
        }
        return answers.get(command, {})


def state_of(cell: Cell) -> CellState:
    return CellState(cast(CellLink, cell))


def robot(name: str, *skills: str) -> dict[str, Any]:
    return {"name": name, "capabilities": list(skills), "error": ""}


def event(number: int, text: str = "") -> dict[str, Any]:
    return {"number": number, "kind": "alarm", "robot": "g60", "text": text, "what_to_do": "wait"}


def test_one_refresh_serves_all_browsers() -> None:
    cell = Cell()
    state = state_of(cell)

    async def three_browsers() -> None:
        await state.refresh()
        cell.asked.clear()
        for _ in range(3):
            state.watch("g60")
        for _ in range(100):  # long enough for all three, and shorter than the next refresh
            await asyncio.sleep(0)
        for _ in range(3):
            state.unwatch("g60")

    asyncio.run(three_browsers())
    assert cell.asked.count("robots") == 1
    assert cell.asked.count("io") == 1
    assert state.alive
    assert state.pins["g60"] == {"of": "g60"}
    assert state.view("g60")["line"] == 7


def test_listeners_are_called_after_changes_only() -> None:
    cell = Cell()
    state = state_of(cell)
    counts: list[int] = []
    unsubscribe = state.on_change(lambda: counts.append(len(state.events)))
    for _ in range(3):
        asyncio.run(state.refresh())
    cell.events = [event(1)]
    asyncio.run(state.refresh())
    assert counts == [0, 1]
    cell.gone = True
    asyncio.run(state.refresh())
    assert len(counts) == 3, "a cell that is gone is a change"
    unsubscribe()
    cell.gone = False
    asyncio.run(state.refresh())
    assert len(counts) == 3


def test_a_listener_that_fails_does_not_stop_the_others() -> None:
    state = state_of(Cell())
    called: list[str] = []
    state.on_change(lambda: 1 / 0)
    state.on_change(lambda: called.append("fresh"))
    asyncio.run(state.refresh())
    assert called == ["fresh"]


def test_a_refused_query_does_not_affect_the_others() -> None:
    cell = Cell()
    state = state_of(cell)
    asyncio.run(state.refresh())
    answer = cell.answer
    cell.answer = (  # type: ignore[method-assign]
        lambda command, parameters: None if command == "robots" else answer(command, parameters)
    )
    cell.events = [event(1)]
    asyncio.run(state.refresh())
    assert state.alive
    assert list(state.robots) == ["g60", "bench"]
    assert len(state.events) == 1


def test_a_command_triggers_a_refresh_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REFRESH_SECONDS", math.inf)
    cell = Cell()
    state = state_of(cell)

    async def look() -> None:
        changes = asyncio.Event()
        state.on_change(changes.set)
        state.watch("g60")
        await changes.wait()
        changes.clear()
        cell.events = [event(1)]
        state.refresh_soon()
        await changes.wait()
        state.unwatch("g60")

    asyncio.run(asyncio.wait_for(look(), 60.0))


def test_pins_are_requested_only_of_robots_that_have_them() -> None:
    cell = Cell()
    state = state_of(cell)
    state._watchers["bench"] = 1
    asyncio.run(state.refresh())
    assert "io" not in cell.asked


def test_a_cell_that_is_gone_leaves_the_last_state_and_is_not_alive() -> None:
    cell = Cell()
    state = state_of(cell)
    asyncio.run(state.refresh())
    cell.gone = True
    asyncio.run(state.refresh())
    assert not state.alive
    assert list(state.robots) == ["g60", "bench"]


def test_events_are_added_once_and_from_the_first_of_a_new_cell() -> None:
    cell = Cell()
    state = state_of(cell)
    cell.events = [event(1), event(2)]
    for _ in range(3):
        asyncio.run(state.refresh())
    assert [e["number"] for e in state.events] == [1, 2]
    cell.events = [event(1, "anew")]
    for _ in range(2):
        asyncio.run(state.refresh())
    assert [e["text"] for e in state.events] == ["anew"]


def test_events_are_bounded() -> None:
    cell = Cell()
    state = state_of(cell)
    cell.events = [event(n) for n in range(1, 3 * EVENTS_KEPT)]
    asyncio.run(state.refresh())
    assert len(state.events) == EVENTS_KEPT


@pytest.mark.parametrize(
    ("facts", "view", "word", "severity"),
    [
        ({"state": "Idle"}, {}, "Idle", "calm"),
        ({"state": "Idle"}, {"state": "Run"}, "Run", "busy"),
        ({}, {"state": "Hold:0"}, "Hold", "held"),
        ({"error": "emergency stop"}, {"state": "Idle"}, "Idle", "alarm"),
        ({}, {"state": "ActiveAlarm"}, "ActiveAlarm", "alarm"),
        ({}, {"state": "EmergencyStopped"}, "EmergencyStopped", "alarm"),
        ({}, {}, "Unknown", "off"),
        ({"state": "RUNNING", "moving": False}, {}, "RUNNING", "calm"),
        (ESTOPPED, {"state": "PAUSED"}, "ESTOP", "alarm"),
        (ESTOPPED, {"state": "ERROR"}, "ERROR", "alarm"),
        ({"error": ""}, {"state": "PAUSED"}, "PAUSED", "held"),
        ({"state": "RUNNING", "moving": True}, {}, "Moving", "busy"),
    ],
)
def test_robot_state(facts: dict[str, Any], view: dict[str, Any], word: str, severity: str) -> None:
    found = robot_state(facts, view)
    assert (found.word, found.severity) == (word, severity)


@given(st.text(), st.text())
def test_any_state_of_a_robot_is_shown(said: str, known: str) -> None:
    assert robot_state({"state": known}, {"state": said}).word


def test_alarms_come_with_what_to_do() -> None:
    robots = {"g60": {"error": "emergency stop"}, "bench": {"error": ""}}
    devices = [{"name": "g60.welder", "faults": ["weld fault: no gas"]}]
    events = [event(1, "emergency stop"), event(2, "weld fault: no gas")]
    assert alarms(robots, devices, events) == [
        ActiveAlarm("g60", "emergency stop", "wait"),
        ActiveAlarm("g60", "weld fault: no gas", "wait"),
    ]
    assert alarms({"bench": {"error": ""}}, [], events) == []


def test_jobs_have_alarms_of_their_own() -> None:
    dark = {"alarm": "the camera is dark", "advice": "switch the light on", "clears": "reset_job"}
    quiet = {"alarm": "", "advice": "", "clears": "", "notice": "source empty"}
    parts = {"g60.pick_place": dark, "kuka.pick_place": quiet, "g60.points": 3}
    (found,) = of_parts(parts)
    assert found == ActiveAlarm(
        "g60", "the camera is dark", "switch the light on", clears="reset_job"
    )
    assert found.of_job
    assert notices(parts) == ["kuka: source empty"]


def test_a_weld_fault_that_ends_a_program_is_one_alarm() -> None:
    robots = {"g60": {"error": "line 15: weld fault: no gas"}}
    devices = [{"name": "g60.welder", "faults": ["weld fault: no gas"]}]
    events = [event(1, "line 15: weld fault: no gas")]
    assert alarms(robots, devices, events) == [
        ActiveAlarm("g60", "line 15: weld fault: no gas", "wait")
    ]
