"""The pages of docs/parity: every operation has a row, and a row claims what can be shown."""

import re
from pathlib import Path

import pytest
from tests import parity
from tests.recordings import JUDGE, WIRE, recorded

from understudy.gcode.blocks import COMMANDS as CODES
from understudy.ports.decoder import Operation
from understudy.registry import kinds, module_of
from understudy.robots.grblhal.face import COMMANDS as BYTES
from understudy.robots.grblhal.face import REALTIME_MEANINGS, operations_of_wire
from understudy.robots.grblhal.face.dollar import COMMANDS as DOLLAR
from understudy.robots.grblhal.numbers import OVERRIDES, TOGGLES
from understudy.robots.grblhal.setting_table import SETTINGS

ROOT = parity.ROOT
ROWS = [(wire, row) for wire in parity.WIRES for row in parity.rows_of(wire)]


def test_the_pages_are_what_the_generator_writes() -> None:
    for path, text in parity.pages():
        assert path.read_text() == text, f"{path.name}: `make parity` writes it anew"
    assert {path for path, _ in parity.pages()} == set(parity.FOLDER.glob("*.md"))


def test_the_sentence_of_the_readme_has_these_figures() -> None:
    assert parity.sentence() in parity.README.read_text(), "`make parity` writes it anew"


@pytest.mark.parametrize("face", kinds("faces"))
def test_every_shipped_face_has_a_page(face: str) -> None:
    assert parity.WIRES[face].module == module_of("faces", face).__name__


def test_everything_that_the_firmware_reads_has_a_row() -> None:
    known = {*CODES, *(f"${name}" for name in DOLLAR), *(f"${number}" for number in SETTINGS)}
    assert known <= operations_of_wire().keys()
    assert {*BYTES, *OVERRIDES, *TOGGLES} <= REALTIME_MEANINGS.keys()


def test_rows_have_a_meaning_and_names_are_there_once() -> None:
    for wire in parity.WIRES:
        names = [row.name for row in parity.rows_of(wire) if not row.name.startswith("FC")]
        assert len(set(names)) == len(names), wire


@pytest.mark.parametrize("test", sorted({row.test for _, row in ROWS}))
def test_the_test_of_a_row_is_there(test: str) -> None:
    path, _, function = test.partition("::")
    text = (ROOT / path).read_text()
    assert not function or f"def {function}(" in text


@pytest.mark.parametrize("wire", ["text_tcp", "fleet", "vda5050", "vision", "hmi_link"])
def test_a_row_is_shown_by_its_test(wire: str) -> None:
    """Its name is in the folder of its test. Tests of frames and registers have other names for
    their fields; those of grblHAL are looked for below."""
    unseen = [row.name for row in parity.rows_of(wire) if not _is_named(row)]
    assert not unseen


def _is_named(row: Operation) -> bool:
    folder = (ROOT / row.test.partition("::")[0]).parent
    files = [*folder.rglob("*.py"), *folder.rglob("*.js"), *folder.rglob("*.chat")]
    word = row.name.rpartition(" ")[2]
    return row.status == "refused" or any(
        re.search(rf"\b{re.escape(word)}\b", _text(path)) for path in files
    )


def _text(path: Path) -> str:
    return _TEXTS.setdefault(path, path.read_text())


_TEXTS: dict[Path, str] = {}


def test_what_is_verified_on_the_firmware_is_in_a_recording_of_it() -> None:
    """Both ways: a row without a recording claims too much, a recorded one too little."""
    sessions = recorded(JUDGE).keys() | recorded(WIRE).keys()
    for name, row in operations_of_wire().items():
        assert (row.verified == "real firmware") == (name in sessions), name
        assert row.test != parity.JUDGE_TEST or name in recorded(JUDGE), name


def test_no_other_wire_claims_real_firmware() -> None:
    assert {wire for wire, row in ROWS if row.verified == "real firmware"} == {"grblhal"}
