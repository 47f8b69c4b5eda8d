"""Each picture of the docs is taken by `make pictures`, and shown on a page."""

import re

from tests.pictures import FOLDER, PLOTS, ROOT, SCRIPTS, file_of_script, pictures

from understudy.config.files import shipped_cells

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = re.compile(r"!\[[^\]]*\]\(([^)]+)\)|<img[^>]*\bsrc=[\"']([^\"']+)")


def test_every_picture_is_declared_taken_and_shown() -> None:
    declared = [*(each.name for each in pictures()), *SCRIPTS]
    assert len(declared) == len(set(declared))
    files = {*(each.file for each in pictures()), *map(file_of_script, SCRIPTS), *PLOTS}
    shown = {
        (page.parent / (markdown or html)).resolve()
        for page in PAGES
        for markdown, html in SHOWN.findall(page.read_text())
    }
    assert shown == files, (
        "shown on a page, but not taken by `make pictures`, or the other way round"
    )
    assert {path for path in FOLDER.rglob("*") if path.is_file()} == files


def test_pictures_of_the_gallery_are_small_and_the_moving_one_is_not_large() -> None:
    sizes = {each.name: each.file.stat().st_size for each in pictures() if each.small}
    assert {name: size for name, size in sizes.items() if size > 80_000} == {}
    assert [each.file.stat().st_size < 1_500_000 for each in pictures() if each.frames] == [True]


def test_the_gallery_has_every_shipped_cell() -> None:
    gallery = (ROOT / "docs/gallery.md").read_text()
    missing = [name for name in shipped_cells() if f"pictures/cell_{name}.webp" not in gallery]
    assert missing == [], "a row in tests/pictures/gallery.py, `make pictures ARGS=cell_NAME`"
