"""docs/hmi/hmi.md lists every key and layer."""

from pathlib import Path

from understudy.hmi.keys import markdown
from understudy.hmi.pages.cell.page import LAYERS
from understudy.hmi.texts import Texts

DOCS = (Path(__file__).parents[2] / "docs/hmi/hmi.md").read_text()


def test_the_table_of_keys_is_the_one_of_the_pages() -> None:
    """Rows of pages that are not installed are left out."""
    listed, known = groups(DOCS), groups(markdown())
    found = {page: rows for page, rows in listed.items() if page in known}
    assert found == known, "python -m understudy.hmi.keys prints the table"


def groups(text: str) -> dict[str, list[str]]:
    """The rows of the table by their page."""
    table = text.partition("| page | key | |\n|---|---|---|\n")[2].partition("\n\n")[0]
    found: dict[str, list[str]] = {}
    page = ""
    for row in table.splitlines():
        page = row.split("|")[1].strip() or page
        found.setdefault(page, []).append(row.partition("| ")[2].partition("| ")[2])
    return found


def test_every_layer_is_listed() -> None:
    texts = Texts("en")
    for layer in LAYERS:
        assert f"| {texts(f'layer.{layer}')} |" in DOCS
