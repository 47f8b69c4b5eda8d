"""The site of the documentation: built strictly, without anything from outside, with its search."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from tests.docs_site import hooks, reference

from understudy.app.stand_in import StandIn
from understudy.cli import load
from understudy.config.cell import Head, RobotHead
from understudy.config.typed import fields_of
from understudy.registry import TABLES, cli_rows, module_of

ROOT = Path(__file__).parents[2]
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|link)\b[^>]*?\b(?:src|href)=["']?([^"'\s>]+)"""
)
IN_STYLES = re.compile(r"""(?:url\(|@import )["']?((?:https?:)?//[^)"']+)""")
DEADLINE_MS = 120_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. mkdocs runs strictly: a link that leads nowhere ends it with an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_of_the_docs_is_in_the_site(site: Path) -> None:
    docs = ROOT / "docs"
    pages = [page.relative_to(docs).with_suffix(".html") for page in docs.rglob("*.md")]
    wanted = [page.parent / "index.html" if page.stem == "README" else page for page in pages]
    assert [str(page) for page in wanted if not (site / page).exists()] == []


def test_no_page_loads_anything_from_outside(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    loaded = {
        (str(page.relative_to(site)), target)
        for page in pages
        for target in LOADED.findall(page.read_text())
        if target.startswith(("//", "http"))
    }
    styles = {
        target for each in site.rglob("*.css") for target in IN_STYLES.findall(each.read_text())
    }
    assert (loaded, styles) == (set(), set())


def test_pages_load_only_what_is_there(site: Path) -> None:
    """Pictures, scripts and styles."""
    missing = {
        (str(page.relative_to(site)), target)
        for page in site.rglob("*.html")
        for target in LOADED.findall(page.read_text())
        if not target.startswith(("data:", "#"))
        and not (page.parent / target.partition("#")[0].partition("?")[0]).exists()
    }
    assert missing == set()


def headings(page: Path) -> set[str]:
    return set(re.findall(r'<h\d id="([^"]+)"', page.read_text()))


def test_the_reference_has_every_command_and_address(site: Path) -> None:
    with StandIn("text_robot") as cell:
        names = {row["name"] for row in cell.do("commands")}
    assert names <= headings(site / "reference/commands.html")
    assert {"change_tool", "hand_eye_start", "start_pick_place", "weld_seam"} <= {
        row.name for row in reference.command_rows()
    }
    addresses = (site / "reference/rest.html").read_text()
    assert [name for name in names if f"<code>/api/{name}</code>" not in addresses] == []


def test_the_reference_has_every_option_of_the_command_line(site: Path) -> None:
    page = site / "reference/cli.html"
    assert cli_rows().keys() <= headings(page)
    options = {
        option
        for name in cli_rows()
        for each in getattr(load(name), "commands", {"": load(name)}).values()
        for parameter in each.params
        if not getattr(parameter, "hidden", False)
        for option in parameter.opts
        if option.startswith("--") and option not in ("--quiet", "--verbose", "--help")
    }
    text = page.read_text()
    assert len(options) > 80
    assert [option for option in options if f"<code>{option}</code>" not in text] == []


def test_the_reference_has_every_key_of_a_cell_file(site: Path) -> None:
    text = (site / "reference/config.html").read_text()
    tables = ("robots", "devices", "sections", "wires", "faces")
    classes = [module_of(table, kind).Config for table in tables for kind in TABLES[table]]
    jobs = [module_of("jobs", kind).SECTIONS.values() for kind in TABLES["jobs"]]
    keys = {
        field.name
        for each in [Head, RobotHead, *classes, *(section for row in jobs for section in row)]
        if isinstance(each, type) and issubclass(each, Struct)
        for field in fields_of(each)
    }
    assert len(keys) > 150
    assert [key for key in keys if f"<code>{key}</code>" not in text] == []


@pytest.mark.parametrize(
    ("key", "unit"),
    [("approach_mm", "mm"), ("max_jerk_mm_s3", "mm/s³"), ("force_n_per_v", "N/V"), ("seed", "")],
)
def test_units_are_those_of_the_name(key: str, unit: str) -> None:
    assert reference.unit_of(key) == unit


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that was opened from the disk; `outside`: what it wanted from elsewhere."""
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    context.set_default_timeout(DEADLINE_MS)
    page = context.new_page()
    page.outside = []
    page.on("request", lambda each: _note(page.outside, each.url))
    yield page
    context.close()


def _note(outside: list[str], url: str) -> None:
    if not url.startswith(("file:", "data:", "blob:", "about:")):
        outside.append(url)


def test_search_finds_move_abs_from_the_disk(site: Path, page: Any) -> None:
    page.goto((site / "index.html").as_uri())
    page.locator('[data-md-component="search-query"]').first.click()
    page.keyboard.type("MOVE_ABS")
    found = page.locator(".md-search-result__item a[href*='text_robot']").first
    found.wait_for()
    assert page.locator(".md-search-result__meta").inner_text() != ""
    assert page.outside == []


def test_diagrams_are_drawn_from_the_disk(site: Path, page: Any) -> None:
    for name, least in (("reference/states", 15), ("robots/mobile_tasks", 5)):
        page.goto((site / f"{name}.html").as_uri())
        page.wait_for_function(
            "least => !document.querySelector('pre.mermaid')"
            " && document.querySelectorAll('div.mermaid').length >= least",
            arg=least,
        )
    assert page.outside == []


# ── Markdown of code hosts ──


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("text\n- one\n- two", "text\n\n- one\n- two"),
        (
            "1. one\n\n   ```sh\n   ls\n   ```\n2. two",
            "1. one\n\n    ```sh\n    ls\n    ```\n2. two",
        ),
        ("- one\n  - in it\n- two", "- one\n    - in it\n- two"),
        ("- one\n  goes on\n\nafter", "- one\n    goes on\n\nafter"),
        ("| `a\\|b` | c |", "| `a|b` | c |"),
        ("```\n- `a\\|b`\n```", "```\n- `a\\|b`\n```"),
    ],
)
def test_markdown_is_what_python_markdown_reads(written: str, read: str) -> None:
    assert hooks.as_markdown_of_the_site(written) == read


def test_links_outside_the_docs_lead_to_pages_of_the_site() -> None:
    text = (
        "[a](../SECURITY.md#limits) [b](../examples/07_weld.py) [c](robots/kuka.md) [d](https://x)"
    )
    assert hooks.with_links_of_the_site(text, "tour.md") == (
        "[a](security.md#limits) [b](source/examples/07_weld.py.md) [c](robots/kuka.md) [d](https://x)"
    )
