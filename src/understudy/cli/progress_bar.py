"""A progress bar for programs of many lines, on stderr and only on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress

if TYPE_CHECKING:
    from understudy.app.validate import Progress as OnProgress

LONG = 2000
"""Number of lines from which a program gets a progress bar."""


@contextmanager
def progress_bar(program: Path, lines: int) -> Iterator["OnProgress | None"]:
    """A progress callback; None for a short program or without a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal or lines < LONG:
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(program.name, total=lines)

        def progress(done: int, total: int) -> bool:
            bar.update(task, completed=done, total=total)
            return True

        yield progress
