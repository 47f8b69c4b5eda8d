"""Explorations: the same seed gives the same run."""

from understudy.campaign.explore import Explored, explore_one
from understudy.campaign.plan import RunSpec


def run(cell: str, seed: int) -> Explored:
    return explore_one((), RunSpec(0, seed, {"cell": cell}))


def test_same_seed_same_run_whatever_was_before() -> None:
    one = run("text_robot", 3)
    assert one.passed, one.problem
    assert one.without_cost() == run("text_robot", 3).without_cost()
    assert one.digest != run("text_robot", 4).digest
