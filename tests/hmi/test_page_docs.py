"""docs/hmi/hmi.md lists every key and layer."""

import re
from pathlib import Path

from understudy.hmi.pages.cell.page import CLEAR_KEYS, LAYERS
from understudy.hmi.scene.scene import VIEWS
from understudy.hmi.texts import Texts
from understudy.registry import TABLES

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs/hmi/hmi.md").read_text()


def test_every_key_is_listed() -> None:
    keys = set(
        re.findall(r'_time_button\(browser, "\w+", "\w+", "(\w)"\)', source("pages/cell/page"))
    )
    keys |= set(re.findall(r'key="([\w?]+)"', source("frame/frame"))) | set(CLEAR_KEYS.values())
    rows = re.findall(r"^\| ([\w ·…]+) \|", DOCS, re.MULTILINE)
    listed = {key for row in rows for key in re.split(r"[ ·]+", row)}
    assert keys - {"?"} <= listed
    assert f"| 1 … {len(VIEWS)} |" in DOCS
    assert f"| F1 … F{len(TABLES['pages'])} |" in DOCS


def test_every_layer_is_listed() -> None:
    texts = Texts("en")
    for layer in LAYERS:
        assert f"| {texts(f'layer.{layer}')} |" in DOCS


def source(module: str) -> str:
    return (ROOT / f"src/understudy/hmi/{module}.py").read_text()
