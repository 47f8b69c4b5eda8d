"""Each picture of the docs is taken by `make pictures`, and shown on a page."""

import re

from tests.pictures import FOLDER, ROOT, SCRIPTS, file_of, pictures

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = re.compile(r"!\[[^\]]*\]\(([^)]+)\)|<img[^>]*\bsrc=[\"']([^\"']+)")


def test_every_picture_is_declared_taken_and_shown() -> None:
    declared = [*(each.name for each in pictures()), *SCRIPTS]
    assert len(declared) == len(set(declared))
    files = {file_of(name) for name in declared}
    shown = {
        (page.parent / (markdown or html)).resolve()
        for page in PAGES
        for markdown, html in SHOWN.findall(page.read_text())
    }
    assert shown == files, (
        "shown on a page, but not taken by `make pictures`, or the other way round"
    )
    assert {path for path in FOLDER.rglob("*") if path.is_file()} == files
