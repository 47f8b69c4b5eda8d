"""The page's words: one file, every language."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

LANGUAGES = ("en", "vi")


class Texts:
    """`texts("frame.reset")` in the language of one browser."""

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else LANGUAGES[0]

    def __call__(self, key: str) -> str:
        return dictionary()[key][self.language]

    def section(self, name: str) -> dict[str, str]:
        """All texts of a section, by the rest of their keys."""
        prefix = f"{name}."
        return {
            key.removeprefix(prefix): text[self.language]
            for key, text in dictionary().items()
            if key.startswith(prefix)
        }

    def translated(self, section: str, sentence: str) -> str:
        """A sentence that the cell said in English; as it came where nobody has translated it."""
        entries = (text for key, text in dictionary().items() if key.startswith(f"{section}."))
        found = next((text for text in entries if text["en"] == sentence), None)
        return found[self.language] if found else sentence

    def of(self, section: str, name: str) -> str:
        """A word that comes from the cell: itself where the dictionary does not know it."""
        known = dictionary().get(f"{section}.{name}")
        return known[self.language] if known else name


@cache
def dictionary() -> Mapping[str, Mapping[str, str]]:
    """Key → language → text."""
    text = files("understudy.hmi").joinpath("texts.yaml").read_text(encoding="utf-8")
    return dict(_leaves(yaml.safe_load(text), ""))


def _leaves(node: Mapping[str, Any], above: str) -> list[tuple[str, Mapping[str, str]]]:
    if set(node) == set(LANGUAGES):
        return [(above, node)]
    found: list[tuple[str, Mapping[str, str]]] = []
    for key, below in node.items():
        found += _leaves(below, f"{above}.{key}" if above else key)
    return found
