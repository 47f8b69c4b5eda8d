"""Declaration of a page and of a panel, and those that the registry lists.

A page module declares `PAGE = Page(...)`. Scripts, styles and texts are files in its folder:

    PAGE = Page(
        name="maintenance", key="F10", icon="build", build=build,
        folder=Path(__file__).parent, scripts=("maintenance.js",),
    )

The name is the route (`/maintenance`), the first part of the text keys (`maintenance.title` names
the tab) and the place of the files (`/static/pages/maintenance/maintenance.js`). A script imports
what pages share by `../../frame/api.js`. A script of another place is listed by its whole address
(`scene.SCRIPT`).

The frame stays while the user changes pages: `build` is called for every visit, and a script is
loaded once and builds its part for every element that appears (`whenReady` in api.js).
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.registry import modules

if TYPE_CHECKING:
    from understudy.hmi.frame.browser import Browser

log = logging.getLogger(__name__)

STATIC = "/static"


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `build` makes its content for one browser; `key` opens it; `icon` is the name of a
    Material icon; `needs` is a command of the cell without which the page is not shown. `skill`
    is a capability in the query `robots` that a robot of the cell must have for it. `opens_for`
    is a kind of robots, or a part of a robot such as `pick_place`: a cell in which every robot is
    one, or has it, opens on this page; so does a cell that has a part of this name itself.
    `keys`: by the text of what it does, each key of the page; one that starts a motion is pressed
    together with Alt ("Alt+g")."""

    name: str
    key: str
    icon: str
    build: Callable[["Browser"], None]
    folder: Path
    scripts: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()
    texts: str = "texts.yaml"
    needs: str = ""
    skill: str = ""
    opens_for: str = ""
    keys: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def route(self) -> str:
        return f"/{self.name}"

    @property
    def address(self) -> str:
        """Where the files of the folder are served."""
        return f"{STATIC}/pages/{self.name}"

    @property
    def script_addresses(self) -> tuple[str, ...]:
        return tuple(s if s.startswith(STATIC) else f"{self.address}/{s}" for s in self.scripts)

    @property
    def style_addresses(self) -> tuple[str, ...]:
        return tuple(f"{self.address}/{style}" for style in self.styles)


@dataclass(frozen=True, slots=True)
class Panel:
    """A part that pages of other capabilities show: `PANEL` of a module in the table `panels`.

    Its name is the first part of its text keys and the place of its files (`/static/NAME`). `page`:
    the page that shows it without naming it; `needs`: the command of the cell without which it does
    not."""

    name: str
    build: Callable[["Browser"], None]
    folder: Path
    styles: tuple[str, ...] = ()
    texts: str = "texts.yaml"
    page: str = ""
    needs: str = ""

    @property
    def address(self) -> str:
        return f"{STATIC}/{self.name}"

    @property
    def style_addresses(self) -> tuple[str, ...]:
        return tuple(f"{self.address}/{style}" for style in self.styles)


def panels() -> tuple[Panel, ...]:
    """The panels of the registry."""
    return tuple(module.PANEL for _, _, module in modules("panels"))


def show_panel(browser: "Browser", name: str) -> None:
    """Builds a panel; nothing if no package offers it."""
    for panel in panels():
        if panel.name == name:
            panel.build(browser)


def show_panels_of(browser: "Browser", page: str) -> None:
    """Builds the panels that ask to be shown on this page of this cell."""
    for panel in panels():
        if panel.page == page and (not panel.needs or panel.needs in browser.cell.commands):
            panel.build(browser)


def pages() -> tuple[Page, ...]:
    """The pages of the registry, in the order of their keys.

    A page from outside that shares a name, key or route with an earlier one is logged and left out.
    """
    found: dict[str, Page] = {}
    for _, _, module in modules("pages"):
        page: Page = module.PAGE
        own = (page.name, page.key, page.route)
        if shared := [mine for mine in own if mine in found]:
            first = found[shared[0]].name
            log.error("the page %s is left out: it shares %s with %s", page.name, shared[0], first)
            continue
        found |= dict.fromkeys(own, page)
    return tuple(sorted(dict.fromkeys(found.values()), key=_place_of_tab))


def _place_of_tab(page: Page) -> tuple[int, str]:
    """Pages stand in the order of their keys, F10 after F9."""
    return len(page.key), page.key


def pages_for(commands: Collection[str]) -> tuple[Page, ...]:
    """The pages for a cell with these commands."""
    return tuple(page for page in pages() if not page.needs or page.needs in commands)


def head(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """HTML head lines that load the scripts and styles of these addresses."""
    links = [f'<link rel="stylesheet" href="{style}">' for style in styles]
    modules = [f'<script type="module" src="{script}"></script>' for script in scripts]
    return "\n".join([*links, *modules])
