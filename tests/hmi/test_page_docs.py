"""The page's own page tells of every key, layer and mark that there is."""

import re
from pathlib import Path

from understudy.hmi.pages import PAGES
from understudy.hmi.pages.cell import CLEARED, LAYERS
from understudy.hmi.pages.stage import VIEWS
from understudy.hmi.texts import Texts

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs/hmi.md").read_text()


def test_every_key_is_told() -> None:
    keys = set(re.findall(r'_act\(browser, "\w+", "\w+", "(\w)"\)', source("timing")))
    keys |= set(re.findall(r'key="([\w?]+)"', source("frame"))) | set(CLEARED.values())
    rows = re.findall(r"^\| ([\w ·…]+) \|", DOCS, re.MULTILINE)
    told = {key for row in rows for key in re.split(r"[ ·]+", row)}
    assert keys - {"?"} <= told
    assert f"| 1 … {len(VIEWS)} |" in DOCS
    assert f"| F1 … F{len(PAGES)} |" in DOCS


def test_every_layer_is_told() -> None:
    texts = Texts("en")
    for layer in LAYERS:
        assert f"| {texts(f'layer.{layer}')} |" in DOCS


def source(page: str) -> str:
    return (ROOT / f"src/understudy/hmi/pages/{page}.py").read_text()
