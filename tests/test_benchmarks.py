"""Every benchmark can be asked for its rows; what it measures is not measured here."""

from collections.abc import Callable
from importlib import import_module
from typing import get_type_hints

import pytest
from benchmarks import Row, figures
from benchmarks.__main__ import main, names


@pytest.mark.parametrize("name", names())
def test_every_benchmark_gives_rows(name: str) -> None:
    rows: Callable[[], list[Row]] = import_module(f"benchmarks.bench_{name}").rows
    assert get_type_hints(rows) == {"return": list[Row]}


def test_a_row_is_five_strings() -> None:
    assert get_type_hints(Row) == dict.fromkeys(Row._fields, str)
    assert len(Row._fields) == 5


def test_an_unknown_name_is_answered_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["wire", "wires"]) == 2
    said = capsys.readouterr().err
    assert "no benchmark wires;" in said
    assert all(name in said for name in names())


def test_the_figures_of_the_house_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    figures.main([])
    said = capsys.readouterr().out
    assert all(title in said for title in figures.committed(figures.TOUR.read_text()))


def test_the_table_of_figures_keeps_its_column_of_before() -> None:
    table = "| figure | before | now |\n|---|---|---|\n| lines | 9 | 8 |"
    text = f"a\n\n<!-- figures -->\n\n{table}\n\nb\n"
    new = figures.written(text, [figures.Figure("lines", 7, []), figures.Figure("rooms", 2, [])])
    assert figures.committed(new) == {"lines": ("9", "7"), "rooms": ("–", "2")}
    assert new.startswith("a\n")
    assert new.endswith("\n\nb\n")
    assert figures.written(new, [figures.Figure("lines", 8, [])]).count("<!-- figures -->") == 1
