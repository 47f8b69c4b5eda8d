"""The pictures of the docs.

Most are screenshots: a shipped cell, a page of it, and what is done before the shot; a module of
this folder declares them in `PICTURES`. The others are drawn by `SCRIPTS`. `make pictures` takes
all of them anew; `PLOTS` are drawn by benchmarks, which take hours. The cells run in lock-step:
time passes only by `advance`, so that a picture shows the same instant every time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tests.browsers import RunningCell, Screen

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
SIZE = {"width": 1366, "height": 768}
SCRIPTS = {"camera": ROOT / "examples" / "15_camera.py"}
"""Picture → script that writes it to the path in its first argument."""
PLOTS = {FOLDER / "growth.svg": "python -m benchmarks.bench_growth --plot"}
"""File → command that draws it."""


SMALL_WIDTH, MOVING_WIDTH = 720, 960
"""Pixels of the pictures of the gallery, and of the moving one."""


def nothing(screen: Screen, cell: RunningCell) -> None:
    """The page is shown as it is."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A screenshot. `prepare` is called with the open page and its cell. Pictures of the same cell
    and options share one running cell, in the order of their declaration. `small`: scaled down, for
    the gallery. `frames`: the picture moves, and has a frame of the page at each step of it."""

    name: str
    cell: str
    path: str = "/"
    prepare: Callable[[Screen, RunningCell], None] = nothing
    options: tuple[str, ...] = ()
    small: bool = False
    frames: Callable[[Screen, RunningCell], Iterator[None]] | None = None

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.{'webp' if self.small or self.frames else 'png'}"


def pictures() -> list[Picture]:
    """The screenshots of all modules of this folder."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    modules = [import_module(f"{__name__}.{name}") for name in names if name != "test_pictures"]
    return [picture for module in modules for picture in module.PICTURES]


def file_of_script(name: str) -> Path:
    return FOLDER / f"{name}.png"


def advance_until(
    screen: Screen, cell: RunningCell, holds: Callable[[], bool], *, step_s: float, what: str
) -> None:
    """Lets time pass in steps until the condition holds."""

    def there() -> bool:
        if holds():
            return True
        cell.ask("advance", seconds=step_s)
        return False

    screen.until(there, what)
