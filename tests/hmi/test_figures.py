"""Figures of pages: no "-0.0", whichever page formats them."""

import re
from pathlib import Path

import understudy
from understudy.hmi.frame.widgets import fixed

CASES = ((-0.04, 1), (-0.0, 1), (-0.4, 0), (-0.06, 1), (-0.0004, 3), (12.34, 1), (-10.0, 0))
FIGURES = ["0.0", "0.0", "0", "-0.1", "0.000", "12.3", "-10"]
OWN_WAYS = re.compile(r"\.toFixed\(|\{[^{}]*:\.\d+f\}")
SOURCES = Path(understudy.__file__).parent
FOLDERS = [SOURCES / "hmi", *SOURCES.glob("**/page")]


def test_a_value_that_rounds_to_zero_has_no_sign() -> None:
    """A vacuum of -0.04 kPa was shown as -0.0 kPa."""
    assert [fixed(*case) for case in CASES] == FIGURES


def test_pages_format_figures_in_one_way() -> None:
    files = [file for folder in FOLDERS for file in (*folder.rglob("*.py"), *folder.rglob("*.js"))]
    assert len(files) > 50
    found = [
        f"{file.relative_to(SOURCES)}: {match[0]}"
        for file in files
        if file.name != "api.js"
        for match in OWN_WAYS.finditer(file.read_text())
    ]
    assert found == [], "use fixed() of frame/widgets.py or frame/api.js"
