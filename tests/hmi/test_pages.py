"""Pages of the registry: their declarations, their files, and a page from another package."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from tests.browsers import RunningCell, Screen

from understudy import registry
from understudy.hmi.page import STATIC, Page, pages, pages_for
from understudy.registry import TABLES

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_shipped_pages_have_the_function_keys_in_order() -> None:
    assert {page.name for page in pages()} == set(TABLES["pages"])
    keys = [f"F{number + 1}" for number in range(len(TABLES["pages"]))]
    assert [page.key for page in pages()] == keys


def test_a_page_is_shown_if_the_cell_has_the_command_that_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needy = Page("needy", "F12", "build", lambda _: None, Path(), needs="pick_place")
    shipped = pages()
    monkeypatch.setattr("understudy.hmi.page.pages", lambda: (*shipped, needy))
    assert needy in pages_for({"robots", "pick_place"})
    assert needy not in pages_for({"robots"})
    assert [page.name for page in pages_for(())] == [
        page.name for page in shipped if not page.needs
    ]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.name))
def test_the_files_of_a_page_are_in_its_folder(page: Page) -> None:
    own = [script for script in page.scripts if not script.startswith(STATIC)]
    for file in (*own, *page.styles, page.texts):
        assert (page.folder / file).is_file()


def test_a_page_with_a_key_that_is_taken_is_left_out_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(registry._registered, "pages", {"again": TABLES["pages"]["log"]})
    assert {page.name for page in pages()} == set(TABLES["pages"])
    assert "the page log is left out: it shares log with log" in caplog.text


# ── a page from another package ──


@pytest.fixture(scope="module")
def cell(
    start_cell: Callable[..., RunningCell], tmp_path_factory: pytest.TempPathFactory
) -> RunningCell:
    """A cell with the page of examples/add_a_page.py, installed by its entry point."""
    folder = tmp_path_factory.mktemp("installed")
    install = f"import add_a_page, pathlib; add_a_page.install(pathlib.Path({str(folder)!r}))"
    subprocess.run([sys.executable, "-c", install], cwd=EXAMPLES, check=True)
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", str(folder), prepend=":")
    started = start_cell(str(folder / "cell.yaml"))
    patch.undo()
    return started


def test_a_page_from_another_package_has_a_tab_a_script_and_texts(
    cell: RunningCell, open_page: Callable[..., Screen]
) -> None:
    screen = open_page(cell)
    screen.page.locator('[data-tab="maintenance"]').click()
    screen.reads("minutes", "min in operation")
    screen.reads("moving", "at rest")
    cell.ask("advance", seconds=600)
    screen.reads("minutes", "10 min in operation")
    cell.ask("move_to", robot="bench", pose_mm_deg=[900, 0, 0, 0, 0, 0])
    screen.reads("moving", "moving: bench")
    screen.page.keyboard.press("m")
    screen.reads("alarm", "emergency stop")
    with screen.page.expect_navigation():
        screen.press("language-vi")
    screen.reads("minutes", "hoạt động")
    screen.reads("moving", "đứng yên")
    screen.page.keyboard.press("F1")
    screen.page.wait_for_url(f"{cell.url}/cell?*")
    assert screen.errors == []


@pytest.mark.parametrize("file", ["page.py", "texts.yaml", "../cell.yaml", ""])
def test_only_scripts_styles_and_pictures_of_a_page_are_served(
    cell: RunningCell, file: str
) -> None:
    assert urlopen(f"{cell.url}/static/pages/maintenance/motion.js").status == 200
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"{cell.url}/static/pages/maintenance/{file}")
