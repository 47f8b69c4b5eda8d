"""Pages in Vietnamese: no English is left in what they show, and their language can be switched."""

import re
from typing import Any

import pytest
from tests.browsers import Screen, WeldingCell

PAGES = ("cell", "program", "plots", "log", "timeline")
ENGLISH = re.compile(
    r"\b(the|of|is|are|not|and|to|with|from|until|by|this|that|was|has|for|on|off|in)\b", re.I
)
"""Words that are in nearly every English sentence, and in no Vietnamese one."""
PATH = re.compile(r"\S*/\S*")
# The rows of the log keep the words of the cell, as the messages beside them do.
SHOWN = """() => {
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const around = walk.currentNode.parentElement;
    const apart = "script, style, pre, .q-icon, .cm-content, .u-log-rows";
    if (!around || around.closest(apart)) continue;
    found.push(walk.currentNode.textContent.trim());
  }
  for (const name of ["title", "aria-label", "placeholder"])
    for (const element of document.querySelectorAll(`[${name}]`))
      found.push(element.getAttribute(name));
  return found.filter(Boolean);
}"""


def shown(screen: Screen) -> set[str]:
    return set(screen.page.evaluate(SHOWN))


@pytest.fixture
def vietnamese(welding: WeldingCell, welding_screen: Screen) -> Screen:
    cookie: Any = {"name": "language", "value": "vi", "url": welding.url}
    welding_screen.page.context.add_cookies([cookie])
    welding_screen.open(f"{welding.url}/cell")
    return welding_screen


def test_no_english_is_left_on_the_pages(vietnamese: Screen) -> None:
    found: set[str] = set()
    for name in PAGES:
        vietnamese.open_tab(name)
        for tab in vietnamese.page.locator(f'[data-page="{name}"] [data-mark^="tab-"]').all():
            tab.click()
        found |= shown(vietnamese)
    assert len(found) > 150
    assert {text for text in found if ENGLISH.search(PATH.sub("", text))} == set()


def test_what_nicegui_shows_by_itself_is_in_the_language_of_the_page(vietnamese: Screen) -> None:
    notice = "document.querySelector('#popup').textContent"
    assert vietnamese.page.evaluate("document.documentElement.lang") == "vi"
    assert "Mất kết nối" in vietnamese.page.evaluate(notice)
    buttons = vietnamese.at("language-en").bounding_box()
    vietnamese.page.evaluate("document.querySelector('#popup').ariaHidden = 'false'")
    box = vietnamese.page.locator("#popup").bounding_box()
    assert box["x"] > buttons["x"] + buttons["width"]
    vietnamese.press("language-en")
    vietnamese.until(
        lambda: vietnamese.page.evaluate("document.documentElement.lang") == "en-US", "English"
    )
    assert "Connection lost" in vietnamese.page.evaluate(notice)
