"""Every benchmark can be asked for its rows; what it measures is not measured here."""

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import get_type_hints
from xml.etree.ElementTree import fromstring

import pytest
from benchmarks import Case, Row, figures
from benchmarks import __main__ as runner
from benchmarks.__main__ import Fallen, Measured, fallen, kept_share, main, names, parsed
from benchmarks.cells import checked_pairs, scene_of
from benchmarks.peers import PEERS


@pytest.mark.parametrize("name", names())
def test_every_benchmark_gives_rows(name: str) -> None:
    rows: Callable[..., list[Row]] = import_module(f"benchmarks.bench_{name}").rows
    assert get_type_hints(rows) in ({"return": list[Row]}, {"case": Case, "return": list[Row]})


def test_a_row_is_strings() -> None:
    assert get_type_hints(Row) == dict.fromkeys(Row._fields, str)


def test_a_ratio_keeps_seven_tenths_of_the_committed_one(tmp_path: Path) -> None:
    """With × more is better, without it less."""
    shares = [kept_share(*pair) for pair in (("10×", "8×"), ("1,000×", "500×"), ("2.0", "4.0"))]
    assert shares == [0.8, 0.5, 0.5]
    assert [kept_share(*pair) for pair in (("10×", "8"), ("–", "8×"), ("0×", "1×"))] == [None] * 3
    rows = [Row("sweep", "", "", now, "") for now in ("6.9×",)] + [Row("start", "", "", "1.4", "")]
    baseline = {"here": {"sweep": "10×", "start": "1.0", "gone": "5×"}}
    assert fallen([Measured("here", "", rows)], baseline) == [
        Fallen("here", "sweep", "10×", "6.9×")
    ]


def test_a_fallen_ratio_and_a_failure_end_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "BASELINE", tmp_path / "baseline.json")
    found = Measured(
        "wire", "A scene.", [Row("trip", "2 ms", "1 ms <a>", "2.0", "< 3", "cut | here")]
    )
    monkeypatch.setattr(runner, "measure", lambda name, case: found)
    files = [tmp_path / name for name in ("t.json", "t.md", "t.svg")]
    words = ["wire", "--json", str(files[0]), "--markdown", str(files[1]), "--plot", str(files[2])]
    assert main([*words, "--write-baseline"]) == 0
    assert main(words) == 0
    assert json.loads(files[0].read_text())["benchmarks"][0]["rows"][0]["what"] == "trip"
    assert "| trip | 2 ms | 1 ms <a> | 2.0 | < 3 | cut / here |" in files[1].read_text()
    assert "wire: trip" in "".join(fromstring(files[2].read_text()).itertext())
    found = Measured("wire", "", [Row("trip", "3 ms", "1 ms", "3.0", "< 3")])
    assert main(["wire"]) == 1
    assert "worse: wire, trip: 2.0 → 3.0" in capsys.readouterr().err
    assert main(["wire", "--seed", "7"]) == 0, "other cases have no committed ratios"
    found = Measured("wire", "", [], "Traceback\nValueError: no")
    assert main(["wire"]) == 1


def test_committed_ratios_are_those_of_benchmarks_there_are() -> None:
    baseline = json.loads(runner.BASELINE.read_text())
    assert set(baseline) <= set(names())
    assert all(parsed(ratio) for rows in baseline.values() for ratio in rows.values())


def test_peers_answer_as_the_detector() -> None:
    """pinocchio is there in every environment of the tests; the others with `make bench`."""
    detector, rng = scene_of(Case(seed=3))
    assert detector.chain is not None
    Q = rng.uniform(detector.chain.lower, detector.chain.upper, (40, 6))
    assert any(detector.collides(Q))
    cells = [peer.cell(detector) for peer in PEERS if peer.installed]
    assert cells
    for cell in cells:
        assert [cell.collides(q) for q in Q] == detector.collides(Q).tolist()


def test_a_scene_is_the_arm_and_the_environment_of_a_cell() -> None:
    detector, _ = scene_of(Case(scene="g60_welding"))
    assert detector.objects
    assert len(checked_pairs(detector)) > len(detector.objects)


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
