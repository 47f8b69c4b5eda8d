"""The table of all keys, from the `keys` of the frame, the scene and the pages.

`python -m understudy.hmi.keys` prints it as it stands in docs/hmi/hmi.md. The list of `?` is
that of the buttons of the open page, which have their keys from here.
"""

from collections.abc import Iterator, Mapping

from understudy.hmi.frame import frame
from understudy.hmi.page import Page, pages
from understudy.hmi.scene import scene
from understudy.hmi.texts import Texts

SHOWN = {"Escape": "Esc", " ": "space"}


def keys_of(page: Page) -> dict[str, str]:
    """The keys that work while this page is open, those of the tabs too, by the text of what each
    does."""
    tabs = {f"{each.name}.title": each.key for each in pages()}
    views = scene.KEYS if scene.SCRIPT in page.scripts else {}
    return {**frame.KEYS, **tabs, **views, **page.keys}


def markdown() -> str:
    """The table of the documentation."""
    return "\n".join(["| page | key | |", "|---|---|---|", *_rows(Texts("en"))])


def _rows(texts: Texts) -> Iterator[str]:
    tabs = {f"{page.name}.title": page.key for page in pages()}
    yield from _group("every page", {**frame.KEYS, **tabs}, texts)
    yield from _group("with a scene", scene.KEYS, texts)
    for page in pages():
        yield from _group(texts(f"{page.name}.title"), page.keys, texts)


def _group(name: str, keys: Mapping[str, str], texts: Texts) -> Iterator[str]:
    for does, key in keys.items():
        yield f"| {name} | {shown(key)} | {texts(does)} |"
        name = ""


def shown(key: str) -> str:
    """A key as people read it: "Alt+g" as "Alt G"."""
    held, plus, letter = key.partition("+")
    return f"{held} {letter.upper()}" if plus and letter else SHOWN.get(key, key)


if __name__ == "__main__":
    print(markdown())
