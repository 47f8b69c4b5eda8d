"""Texts of all pages, in every language."""

import re
from importlib.resources import files
from pathlib import Path
from string import Formatter

import pytest

from understudy.hmi.texts import LANGUAGES, Texts, dictionary

HMI = Path(str(files("understudy.hmi")))


@pytest.mark.parametrize("key", sorted(dictionary()))
def test_a_text_has_the_same_fields_in_every_language(key: str) -> None:
    texts = dictionary()[key]
    assert set(texts) == set(LANGUAGES)
    assert all(texts.values())
    filled_in = {language: _fields(text) for language, text in texts.items()}
    assert len(set(filled_in.values())) == 1


def test_every_text_that_the_pages_use_exists() -> None:
    code = "\n".join(path.read_text() for path in HMI.rglob("*.py"))
    used = set(re.findall(r'texts\("([\w.]+)"\)', code))
    assert used
    assert used <= set(dictionary())


def test_an_unknown_language_is_english_and_an_unknown_name_stays() -> None:
    texts = Texts("tlh")
    assert texts("frame.reset") == "Reset"
    assert texts.of("state", "Qapla") == "Qapla"
    assert Texts("vi").of("state", "Idle") == "Sẵn sàng"


def _fields(text: str) -> frozenset[str | None]:
    return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)
