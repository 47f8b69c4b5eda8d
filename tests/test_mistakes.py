"""Wrong cell files, programs and command lines: each message says what to do next."""

import re
import sys
from pathlib import Path

import pytest
from tests.mistakes import CELLS, GROUPS, PAGE, Mistake, text

from understudy.cli import main

NEXT_STEP = re.compile(r"allowed|did you mean|; set |-h' for help|; looked for")
ALL = [row for rows in GROUPS.values() for row in rows]


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.what)
def test_the_message_names_the_next_step(
    row: Mistake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ("cell.yaml" if row in CELLS else "part.gcode")).write_text(row.text)
    monkeypatch.setattr(sys, "argv", ["understudy", *row.words.split()])
    try:
        code: object = main()
    except SystemExit as end:
        code = end.code
    printed = capsys.readouterr()
    said = " ".join((printed.out + printed.err).split())
    assert code == row.code, said
    assert row.says in said
    assert code == 1 or (NEXT_STEP.search(said) and not printed.out), said


def test_there_are_fifty_and_the_page_lists_them() -> None:
    assert len(ALL) >= 50
    assert len({row.what for row in ALL}) == len(ALL)
    assert PAGE.read_text() == text(), "python -m tests.mistakes writes the page anew"
