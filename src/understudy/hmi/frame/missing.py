"""What the frame shows at an address that no page has."""

from pathlib import Path

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.page import Page


def build(browser: Browser) -> None:
    with ui.element("div").classes("u-missing").props("data-mark=missing"):
        ui.icon("wrong_location")
        ui.label(browser.texts("frame.missing")).classes("u-notice-word")
        ui.label(browser.texts("frame.missing_hint")).classes("u-quiet")


MISSING = Page("missing", "", "", build, folder=Path(__file__).parent)
