"""Pages in Vietnamese: no English is left in what they show, and their language can be switched."""

from typing import Any

import pytest
from tests.browsers import Screen, WeldingCell, english

PAGES = ("cell", "program", "plots", "log", "timeline")


@pytest.fixture
def vietnamese(welding: WeldingCell, welding_screen: Screen) -> Screen:
    cookie: Any = {"name": "language", "value": "vi", "url": welding.url}
    welding_screen.page.context.add_cookies([cookie])
    welding_screen.open(f"{welding.url}/cell")
    return welding_screen


def test_no_english_is_left_on_the_pages(vietnamese: Screen, welding: WeldingCell) -> None:
    welding.ask("enable", robot="g60")
    welding.ask("mdi", robot="g60", line="G0 B75")  # refused: its answer stays on a page
    found: set[str] = set()
    for name in PAGES:
        vietnamese.open_tab(name)
        for tab in vietnamese.page.locator(f'[data-page="{name}"] [data-mark^="tab-"]').all():
            tab.click()
        found |= vietnamese.shown()
    assert len(found) > 150
    assert english(found) == set()


def test_what_nicegui_shows_by_itself_is_in_the_language_of_the_page(vietnamese: Screen) -> None:
    notice = "document.querySelector('#popup').textContent"
    assert vietnamese.page.evaluate("document.documentElement?.lang") == "vi"
    assert "Mất kết nối" in vietnamese.page.evaluate(notice)
    buttons = vietnamese.at("language-en").bounding_box()
    vietnamese.page.evaluate("document.querySelector('#popup').ariaHidden = 'false'")
    box = vietnamese.page.locator("#popup").bounding_box()
    assert box["x"] > buttons["x"] + buttons["width"]
    vietnamese.press("language-en")
    vietnamese.until(
        lambda: vietnamese.page.evaluate("document.documentElement?.lang") == "en-US", "English"
    )
    assert "Connection lost" in vietnamese.page.evaluate(notice)
