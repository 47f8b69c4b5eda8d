"""Time jumps from wake to wake; slicing the same time differently changes nothing."""

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.agenda import advance, earliest

Diary = list[tuple[str, int]]


@dataclass
class Alarm:
    """Wakes at the given times, records them, and may make other parts due."""

    name: str
    moments: list[int]
    diary: Diary
    sets_off: list["Alarm"] = field(default_factory=list)
    delay: int = 0
    left: int = 3

    def next_wake(self) -> int | None:
        return min(self.moments, default=None)

    def wake(self, now: int) -> None:
        self.moments = [moment for moment in self.moments if moment > now]
        self.diary.append((self.name, now))
        if self.left > 0:
            self.left -= 1
            for other in self.sets_off:
                other.moments.append(now + self.delay)


class Stuck:
    """Is due at the same instant for ever."""

    def next_wake(self) -> int | None:
        return 7

    def wake(self, now: int) -> None:
        return None


def test_at_equal_times_parts_act_in_cell_file_order() -> None:
    diary: Diary = []
    parts = [Alarm("a", [5, 2], diary), Alarm("b", [5, 1], diary), Alarm("c", [5], diary)]
    advance(parts, 5)
    assert diary == [("b", 1), ("a", 2), ("a", 5), ("b", 5), ("c", 5)]


def test_time_jumps_and_settled_is_called_once_per_instant() -> None:
    instants: list[int] = []
    parts = [Alarm("a", [10**15, 3], []), Alarm("b", [3], [])]
    advance(parts, 2 * 10**15, instants.append)
    assert instants == [3, 10**15]


def test_the_end_of_a_slice_is_included_and_later_wakes_are_not() -> None:
    diary: Diary = []
    parts = [Alarm("a", [4, 5], diary)]
    advance(parts, 4)
    assert diary == [("a", 4)]
    assert earliest(parts) == 5


def test_an_earlier_part_made_due_at_this_instant_still_acts() -> None:
    diary: Diary = []
    lamp = Alarm("lamp", [], diary)
    switch = Alarm("switch", [5], diary, sets_off=[lamp])
    advance([lamp, switch], 5)
    assert diary == [("switch", 5), ("lamp", 5)]


def test_a_wake_cancelled_by_an_earlier_part_does_not_happen() -> None:
    diary: Diary = []
    bell = Alarm("bell", [5, 9], diary)

    class Silencer(Alarm):
        def wake(self, now: int) -> None:
            super().wake(now)
            bell.moments.remove(now)

    advance([Silencer("silencer", [5], diary), bell], 9)
    assert diary == [("silencer", 5), ("bell", 9)]


def test_a_part_that_is_always_due_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"stands at 0.000000007 s: Stuck is due"):
        advance([Alarm("a", [7], []), Stuck()], 10)


def test_no_part_has_a_wake() -> None:
    assert earliest([Alarm("a", [], [])]) is None
    advance([], 100)


MOMENTS = st.lists(st.integers(0, 30), max_size=5)
PARTS = st.lists(
    st.tuples(MOMENTS, st.sets(st.integers(0, 3)), st.integers(0, 4)), min_size=1, max_size=4
)


def _company(recipe: list[tuple[list[int], set[int], int]]) -> tuple[list[Alarm], Diary]:
    diary: Diary = []
    parts = [
        Alarm(str(n), list(moments), diary, delay=delay)
        for n, (moments, _, delay) in enumerate(recipe)
    ]
    for part, (_, others, _) in zip(parts, recipe, strict=True):
        part.sets_off = [parts[n] for n in sorted(others) if n < len(parts)]
    return parts, diary


@given(PARTS, st.lists(st.integers(0, 60)))
def test_slicing_time_changes_nothing(
    recipe: list[tuple[list[int], set[int], int]], cuts: list[int]
) -> None:
    whole, one_go = _company(recipe)
    advance(whole, 60)
    sliced, in_slices = _company(recipe)
    for cut in [*sorted(cuts), 60]:
        advance(sliced, cut)
    assert in_slices == one_go
    assert all(before <= after for (_, before), (_, after) in pairwise(one_go))


class Follower:
    """Looks every 10 ns while something moves, from the end of its last look on."""

    def __init__(self) -> None:
        self.seen, self.moves, self.looks = 0, False, list[int]()

    def next_wake(self) -> int | None:
        return self.seen + 10 if self.moves else None

    def wake(self, now: int) -> None:
        self.seen = now
        self.looks.append(now)


def test_a_part_that_was_due_before_the_present_is_woken_once_at_the_present() -> None:
    follower = Follower()
    advance([follower], 1_000_000)
    follower.moves = True
    advance([follower], 1_000_025, since=1_000_000)
    assert follower.looks == [1_000_000, 1_000_010, 1_000_020]
