"""Texts of the frame, the scene and the pages, in every language."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from understudy.errors import ConfigError
from understudy.hmi.page import Page, Panel, pages, panels

LANGUAGES = ("en", "vi")
FIELD = re.compile(r"\\{(\w+)\\}")
"""A {field} in a phrase whose special characters are escaped."""
CELL = "cell"
"""The sentence of the cell, for a text that says it in other words: buttons, not commands."""
SHARED = tuple(Path(__file__).parent / folder / "texts.yaml" for folder in ("frame", "scene"))


class Texts:
    """`texts("frame.reset")` in the language of one browser."""

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else LANGUAGES[0]

    def __call__(self, key: str) -> str:
        return dictionary()[key][self.language]

    def section(self, name: str) -> dict[str, str]:
        """All texts of a section, by the rest of their keys."""
        return {key: text[self.language] for key, text in _section(name)}

    def translated(self, section: str, sentence: str) -> str:
        """The translation of an English text of the cell; the text itself without one."""
        return _translations(self.language, section).get(sentence, sentence)

    def of_cell(self, sentence: str) -> str:
        """A sentence of the cell with its known phrases (section `refusal`) in this language; as
        api.js does it. A {field} of a phrase is any words, which are kept."""
        for pattern, translation in _phrases(self.language):
            found = pattern.search(sentence)
            if found is not None:
                words = _filled(translation, found)
                sentence = sentence[: found.start()] + words + sentence[found.end() :]
        return sentence

    def translations(self, section: str) -> dict[str, str]:
        """Text of the cell → text in this language."""
        return dict(_translations(self.language, section))

    def of(self, section: str, name: str) -> str:
        """The text of a name that the cell sent; the name itself if there is no text."""
        known = dictionary().get(f"{section}.{name}")
        return known[self.language] if known else name


def cell_text(text: Mapping[str, str]) -> str:
    """What the cell sends for this text: the English one, unless it has another."""
    return text.get(CELL, text["en"])


@cache
def _phrases(language: str) -> list[tuple[re.Pattern[str], str]]:
    """Phrases of the cell, the longest first, and their translations."""
    known = Texts(language).translations("refusal")
    rows = sorted(known.items(), key=lambda row: len(row[0]), reverse=True)
    return [
        (re.compile(FIELD.sub(r"(?P<\1>.+?)", re.escape(phrase))), translation)
        for phrase, translation in rows
        if phrase != translation
    ]


def _filled(translation: str, found: re.Match[str]) -> str:
    fields = found.groupdict()
    return re.sub(r"{(\w+)}", lambda field: fields.get(field[1], field[0]), translation)


@cache
def dictionary() -> Mapping[str, Mapping[str, str]]:
    """Key → language → text, of all pages and panels."""
    found: dict[str, Mapping[str, str]] = {}
    declared: tuple[Panel | Page, ...] = (*panels(), *pages())
    for file in (*SHARED, *(each.folder / each.texts for each in declared)):
        for key, text in _leaves(yaml.safe_load(file.read_text(encoding="utf-8")), ""):
            if key in found:
                raise ConfigError("another page has a text of this key", file=str(file), key=key)
            found[key] = text
    return found


@cache
def _translations(language: str, section: str) -> Mapping[str, str]:
    return {cell_text(text): text[language] for _, text in _section(section)}


def _section(name: str) -> list[tuple[str, Mapping[str, str]]]:
    prefix = f"{name}."
    return [
        (key.removeprefix(prefix), text)
        for key, text in dictionary().items()
        if key.startswith(prefix)
    ]


def _leaves(node: Mapping[str, Any], above: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    if set(node) - {CELL} == set(LANGUAGES):
        yield above, node
        return
    for key, below in node.items():
        yield from _leaves(below, f"{above}.{key}" if above else key)
