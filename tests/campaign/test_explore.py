"""Explorations: the same seed gives the same run, and bugs that were planted are found."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from typer.testing import CliRunner

from understudy.campaign.explore import Explored, Exploring, Plan, explore_one, summary_of
from understudy.campaign.plan import RunSpec
from understudy.cli import app
from understudy.errors import ConfigError
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.ports.decoder import Decoder
from understudy.ports.exploration import lines_answered_once
from understudy.robots.mobile.runtime.outgoing import Outbox
from understudy.simulation.program.runner import Runner

SOAK_HOURS = 1000.0
SEARCH_CPU_S = 1200.0
"""Ten minutes on two cores."""


def run(cell: str, seed: int, without: tuple[str, ...] = ()) -> Explored:
    return explore_one((), RunSpec(0, seed, {"cell": cell}, without))


def test_same_seed_same_run_whatever_was_before() -> None:
    one = run("text_robot", 3)
    assert one.passed, one.problem
    assert one.without_cost() == run("text_robot", 3).without_cost()
    assert one.digest != run("text_robot", 4).digest


# ── invariants ──


class Said:
    """`Explored` of one face of text with what has passed at it; ``state``: of its robot."""

    now = 0

    def __init__(self, state: str | None, *passed: tuple[str, bytes]) -> None:
        self.faces = {"bench.text": SimpleNamespace(decoder=Decoder())}
        self.passed = [
            SimpleNamespace(kind=kind, data=data, endpoint="bench.text", peer="one")
            for kind, data in passed
        ]
        condition = SimpleNamespace(state=state)
        self._actions = state and SimpleNamespace(condition=lambda now: condition)

    def disturbed(self, endpoint: str) -> bool:
        return False

    def interventions(self, endpoint: str) -> int:
        return 0

    def is_owed(self, endpoint: str, peer: str) -> bool:
        return False

    def actions(self, robot: str) -> Any:
        return self._actions


@pytest.mark.parametrize(
    ("state", "passed", "problem"),
    [
        ("Idle", [(">", b"A\nB"), ("<", b"OK\n"), (">", b"\n"), ("<", b"OK\n")], ""),
        ("Idle", [(">", b"A\nB\n"), ("<", b"OK\n")], "1 lines are not answered at bench.text"),
        (None, [(">", b"A\n")], "1 lines are not answered at bench.text"),
        ("Hold", [(">", b"A\n")], ""),
        ("Idle", [(">", b"A\n"), ("<", b"OK\nOK\n")], "1 answers too many at bench.text"),
        ("Idle", [(">", b"A\n"), ("<", b"ALARM:1\n")], ""),
        ("Idle", [(">", b"A\n\x18"), ("<", b"OK\n")], ""),
    ],
)
def test_every_line_is_answered_once(
    state: str | None, passed: list[tuple[str, bytes]], problem: str
) -> None:
    look = lines_answered_once(cast(Any, Said(state, *passed)), "bench.text")
    assert look is not None
    assert look() == problem


# ── planted bugs ──


class Planted(NamedTuple):
    """A bug that takes the place of a method. `keeps`: the faults and steps of a seed that show
    it."""

    owner: type
    method: str
    bug: Callable[..., Any]
    cell: str
    breaks: str
    seed: int
    keeps: tuple[str, ...]


def stop_that_keeps_the_queue(runner: Any, now: int, *, silent: bool = True) -> None:
    """Brakes, and the lines that wait go on afterwards."""
    runner.queue.stop(now)
    if silent:
        runner.hooks.switch_off(now)
    runner.run(now)


def reconnect_that_loses(outbox: Any) -> None:
    """Messages in flight are taken as arrived when the connection is lost."""
    for message_id in list(outbox._sent_at):
        outbox.confirm(message_id)


pause = PickPlaceManager.pause


def pause_that_opens(job: Any, now: int) -> Any:
    refused = pause(job, now)
    if refused is None:
        job._hand.start_release(now)
    return refused


PLANTED = {
    "a stop does not clear a queue": Planted(
        Runner,
        "stop",
        stop_that_keeps_the_queue,
        "grblhal_6axis",
        "no motion after a stop",
        17,
        ("step-5", "step-12", "step-13"),
    ),
    "an ack is lost on reconnect": Planted(
        Outbox,
        "connection_lost",
        reconnect_that_loses,
        "mobile_robot",
        "every command is acknowledged and ends once",
        1,
        ("step-3",),
    ),
    "a hand opens in a pause": Planted(
        PickPlaceManager,
        "pause",
        pause_that_opens,
        "pick_place",
        "a running job opens the hand with a part only in RELEASING",
        76,
        ("step-3", "step-4", "step-5"),
    ),
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_a_planted_bug_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    names = Exploring(planted.cell, planted.seed).names()
    without = tuple(name for name in names if name not in planted.keeps)
    sound = run(planted.cell, planted.seed, without)
    assert sound.passed, sound.problem
    monkeypatch.setattr(planted.owner, planted.method, planted.bug)
    assert run(planted.cell, planted.seed, without).broken == planted.breaks


@pytest.mark.soak
@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_a_planted_bug_is_found_in_ten_minutes(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an exploration of three cells from the first seed on."""
    cells = tuple(each.cell for each in PLANTED.values())
    monkeypatch.setattr(planted.owner, planted.method, planted.bug)
    outcomes, took = [], 0.0
    for spec in Plan(cells, within_s=10 * SEARCH_CPU_S).specs():
        outcomes.append(explore_one((), spec))
        took += outcomes[-1].cpu_s
        assert took < SEARCH_CPU_S
        if outcomes[-1].broken:
            break
    (finding,) = summary_of(outcomes).findings
    print(f"{finding.problem}: {len(outcomes)} runs, {took:.0f} s; {finding.command}")
    assert len(finding.script) <= 6


# ── what was reached ──


def test_what_was_not_reached_is_named_in_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    words = ["campaign", "--explore", "--cells", "text_robot", "--hours", "1", "--workers", "1"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "1.0 robot-hours in 1 runs of text_robot" in done.output
    assert "\x1b[31mnot reached: " in done.output


def test_what_must_be_reached_fails_the_exploration_if_it_was_not() -> None:
    words = ["campaign", "--explore", "--cells", "text_robot", "--hours", "1", "--workers", "1"]
    done = CliRunner().invoke(app, [*words, "--json", "-", "--must-reach", "alarm,fault"])
    missed = json.loads(done.stdout)["missed"]
    assert done.exit_code == 1, done.output
    assert f"{len(missed['every part fault'])} were not reached" in done.stderr
    done = CliRunner().invoke(app, [*words, "--must-reach", "alarm"])  # the robot has none
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--explore", "--must-reach", "stat"], "did you mean 'state'"),
        (["plan.yaml", "--must-reach", "state"], "--must-reach and --keep are for explorations"),
        (["--explore", "--keep", "step-1"], "--keep is for one run"),
    ],
)
def test_a_wrong_option_is_named(words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["campaign", *words])
    assert isinstance(done.exception, ConfigError)
    assert message in str(done.exception)


def test_one_run_is_played_again_with_what_it_takes() -> None:
    words = ["campaign", "--explore", "--cells", "text_robot", "--only", "3", "--keep", "step-1"]
    done = CliRunner().invoke(app, [*words, "--json", "-"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["figures"]["simulated_s"] == 3600.0


@pytest.mark.soak
def test_a_thousand_robot_hours() -> None:
    found = summary_of(explore_one((), spec) for spec in Plan(hours=SOAK_HOURS).specs())
    assert found.findings == ()
    assert found.robot_hours >= SOAK_HOURS
    print(f"{found.robot_hours:g} robot-hours, {found.runs} runs, seeds {found.seeds}")
    print(f"{found.cpu_s:.0f} s of processor, something moved in {found.moved_hours:g} hours")
    for key, missed in found.missed.items():
        print(f"{key}: not reached: {', '.join(missed)}")
