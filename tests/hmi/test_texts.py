"""Texts of all pages, in every language."""

import ast
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Formatter

import pytest

from understudy.hmi.texts import CELL, LANGUAGES, Texts, cell_text, dictionary
from understudy.registry import modules

HMI = Path(str(files("understudy.hmi")))


@pytest.mark.parametrize("key", sorted(dictionary()))
def test_a_text_has_the_same_fields_in_every_language(key: str) -> None:
    texts = dictionary()[key]
    assert set(texts) - {CELL} == set(LANGUAGES)
    assert all(texts.values())
    filled_in = {language: _fields(text) for language, text in texts.items()}
    assert len(set(filled_in.values())) == 1


def test_every_text_that_the_pages_use_exists() -> None:
    code = "\n".join(path.read_text() for path in HMI.rglob("*.py"))
    used = set(re.findall(r'texts\("([\w.]+)"\)', code))
    assert used
    assert used <= set(dictionary())


@pytest.mark.parametrize("key", sorted(k for k in dictionary() if k.startswith("refusal.")))
def test_a_refusal_that_is_translated_is_one_that_the_cell_sends(key: str) -> None:
    phrase = re.sub(r"\{\w+\}", "{}", cell_text(dictionary()[key]))
    assert any(phrase in text for text in _literals())


COMMAND_NAME = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
JOBS = ("pick_place", "calibration")


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_of_the_jobs_name_buttons_and_no_commands(language: str) -> None:
    texts = Texts(language)
    shown = [text for page in JOBS for text in texts.section(page).values()]
    shown += texts.section("refusal").values()
    named = {word for text in shown for word in COMMAND_NAME.findall(text)}
    assert {"reset_pallet", "reset_pick_place"} <= _commands()
    assert named & _commands() == set()


def _commands() -> set[str]:
    """The names of the commands of the capabilities and of every cell."""
    return {
        name
        for _, _, module in modules("commands")
        for each in vars(module).values()
        if isinstance(each, type)
        for name, method in vars(each).items()
        if hasattr(method, "command_marks")
    }


@cache
def _literals() -> list[str]:
    """Every text in the source; the fields of an f-string are {}."""
    found = []
    for path in HMI.parent.rglob("*.py"):
        if HMI in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.JoinedStr():
                    parts = (getattr(part, "value", "") for part in node.values)
                    found.append("".join(p if isinstance(p, str) else "{}" for p in parts))
                case ast.Constant(value=str(text)):
                    found.append(text)
    return found


def test_an_unknown_language_is_english_and_an_unknown_name_stays() -> None:
    texts = Texts("tlh")
    assert texts("frame.reset") == "Reset"
    assert texts.of("state", "Qapla") == "Qapla"
    assert Texts("vi").of("state", "Idle") == "Sẵn sàng"


def _fields(text: str) -> frozenset[str | None]:
    return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)


@pytest.mark.parametrize(
    ("sentence", "vi"),
    [
        ("emergency stop: reset first", "dừng khẩn cấp: hãy đặt lại trước"),
        ("0 of 24 corners of the board are seen", "thấy 0 trên 24 góc của tấm mẫu"),
        ("X1: emergency stop: reset first; x", "X1: dừng khẩn cấp: hãy đặt lại trước; x"),
        ("stopped in RETRACT_PICK", "đã dừng ở RETRACT_PICK"),
        ("motor fault of J2: reset first", "lỗi động cơ J2: hãy đặt lại trước"),
        ("a sentence that is not known (1+1) {x}", "a sentence that is not known (1+1) {x}"),
        ("", ""),
    ],
)  # fmt: skip
def test_known_phrases_in_a_sentence_of_the_cell_are_translated(sentence: str, vi: str) -> None:
    assert Texts("vi").of_cell(sentence) == vi
    assert Texts("en").of_cell(sentence) == sentence


def test_sentences_of_the_cell_name_buttons_on_the_page() -> None:
    sent = "pick & place has a fault: reset it first (reset_pick_place)"
    assert Texts("en").of_cell(sent) == "pick & place has a fault: press RESET first"
