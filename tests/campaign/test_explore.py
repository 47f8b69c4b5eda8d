"""Explorations: what is drawn, what is found, and three planted bugs."""

from collections.abc import Callable
from typing import Any

import pytest

from understudy.campaign.explore import (
    Explored,
    explore_one,
)
from understudy.campaign.plan import RunSpec
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.robots.kuka.robot import KukaGcodeServer
from understudy.robots.mobile.runtime.outgoing import Outbox


def run(cell: str, seed: int, *without: str) -> Explored:
    return explore_one((), RunSpec(0, seed, {"cell": cell}, without))


# ── planted bugs ────────────────────────────────────────────────────────────────────────────────


def stop_keeps_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop drops the record in flight, and goes on with those that wait."""
    stop = KukaGcodeServer.stop

    def stops(self: Any, now: int) -> None:
        waiting = list(self._state.waiting)
        stop(self, now)
        self._state.waiting.extend(waiting)
        self._advance(now)

    monkeypatch.setattr(KukaGcodeServer, "stop", stops)


def reconnect_loses_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the broker had not confirmed when the connection was lost is not sent again."""

    def lost(self: Any) -> None:
        for message_id in list(self._sent_at):
            self.confirm(message_id)

    monkeypatch.setattr(Outbox, "connection_lost", lost)


def pause_opens_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hand opens in a pause."""
    pause = PickPlaceManager.pause

    def opens(self: Any, now: int) -> Any:
        refused = pause(self, now)
        if refused is None:
            self._hand.start_release(now)
        return refused

    monkeypatch.setattr(PickPlaceManager, "pause", opens)


Plant = Callable[[pytest.MonkeyPatch], None]
PLANTS: dict[str, tuple[Plant, str, str]] = {
    "queue": (stop_keeps_queue, "kuka_eki", "no motion after a stop"),
    "ack": (
        reconnect_loses_messages,
        "mobile_robot",
        "every command is acknowledged and ends once",
    ),
    "hand": (
        pause_opens_hand,
        "pick_place",
        "a running job opens the hand with a part only in RELEASING",
    ),
}


def test_same_seed_same_run_whatever_was_before() -> None:
    one = run("text_robot", 3)
    assert one.passed, one.problem
    assert one.without_cost() == run("text_robot", 3).without_cost()
    assert one.digest != run("text_robot", 4).digest
