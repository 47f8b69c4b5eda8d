"""A client that sends nonsense without end does not fill the log."""

import logging

from understudy.cli.run import BURST, MOST_KINDS, WINDOW_S, RepeatFilter

Said = tuple[float, str]


def reported(said: list[Said]) -> list[str]:
    quiet = RepeatFilter()
    lines = []
    for at, message in said:
        record = logging.LogRecord("", logging.INFO, "", 0, "%s", (message,), None)
        record.created = at
        if quiet.filter(record):
            lines.append(record.getMessage())
    return lines


def test_repeated_lines_are_logged_a_few_times_and_then_counted() -> None:
    flood = [(n / 1000, f"kuka: record {n}: X = {n}.5e-3 mm is absurd") for n in range(1000)]
    later = (WINDOW_S + 1.0, "kuka: record 1000: X = nan mm is absurd")
    lines = reported([*flood, later, (WINDOW_S + 1.1, "kuka: record 1001: X = -inf mm is absurd")])
    assert lines[:BURST] == [message for _, message in flood[:BURST]]
    assert lines[BURST:] == [
        f"{later[1]} (and {1000 - BURST} more like it before)",
        "kuka: record 1001: X = -inf mm is absurd",
    ]


def test_lines_that_differ_in_more_than_numbers_are_logged() -> None:
    said = [(0.0, f"{robot}: {what}") for robot in "abcd" for what in ("stopped", "released")]
    assert reported(said) == [message for _, message in said]


def test_rare_lines_are_always_logged() -> None:
    said = [(n * WINDOW_S, "the same") for n in range(10)]
    assert reported(said) == ["the same"] * 10


def test_the_number_of_remembered_kinds_is_limited() -> None:
    words = ["x" * n for n in range(1, 2 * MOST_KINDS)]
    quiet = RepeatFilter()
    for word in words:
        quiet.filter(logging.LogRecord("", logging.INFO, "", 0, word, (), None))
    assert len(quiet._kinds) == MOST_KINDS
