"""The smallest way to a failure: the smallest seed at each point, with as few rules as possible."""

from collections.abc import Callable, Iterable
from shlex import quote
from typing import Any

import msgspec
from msgspec import Struct

from understudy.campaign.one_run import Outcome
from understudy.campaign.plan import PlanFile, RunSpec

Carry = Callable[[RunSpec], Outcome]


class SmallestFailure(Struct, frozen=True):
    """The failing run with the smallest seed of a point. `without`: rules that are not needed for
    it. `command`: replays it."""

    seed: int
    point: dict[str, Any]
    problem: str
    without: tuple[str, ...]
    needed: tuple[str, ...]
    command: str


def smallest_failures(
    planned: PlanFile, outcomes: Iterable[Outcome], carry_out: Carry
) -> list[SmallestFailure]:
    """One for each point of the grid that has failures; rules are removed one by one."""
    first: dict[bytes, Outcome] = {}
    for outcome in sorted(outcomes, key=lambda each: each.number):
        if not outcome.passed:
            first.setdefault(msgspec.json.encode(outcome.point), outcome)
    return [_smallest(planned, outcome, carry_out) for outcome in first.values()]


def _smallest(planned: PlanFile, failed: Outcome, carry_out: Carry) -> SmallestFailure:
    spec = RunSpec(failed.number, failed.seed, failed.point)
    rules = tuple(planned.config(spec).head.scenario.rules)
    without: tuple[str, ...] = ()
    problem = failed.problem
    for name in rules:
        tried = msgspec.structs.replace(spec, without=(*without, name))
        outcome = carry_out(tried)
        if not outcome.passed:
            without, problem = tried.without, outcome.problem
    needed = tuple(name for name in rules if name not in without)
    command = replay_command(planned.file, failed.seed, failed.point, without)
    return SmallestFailure(failed.seed, failed.point, problem, without, needed, command)


def replay_command(file: str, seed: int, point: dict[str, Any], without: Iterable[str]) -> str:
    """The command line that carries out one run again and shows what happens."""
    words = ["understudy", "campaign", quote(file), "--only", str(seed)]
    for key, value in point.items():
        words += ["--point", quote(f"{key}={msgspec.json.encode(value).decode()}")]
    for name in without:
        words += ["--without", quote(name)]
    return " ".join(words)
