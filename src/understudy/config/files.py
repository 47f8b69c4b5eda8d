"""Where cells are: files of the user's, or shipped ones by name."""

import os.path
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from understudy.errors import ConfigError, unknown


def shipped_cells() -> dict[str, Traversable]:
    folder = resources.files("understudy").joinpath("catalog", "cells")
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {file.name.removesuffix(".yaml"): file for file in files if file.name.endswith(".yaml")}


def find_cell(name: str) -> tuple[str, str]:
    """The file's name and its text, for a path or the name of a shipped cell."""
    shipped = shipped_cells()
    if name in shipped:
        return f"{name}.yaml (shipped)", shipped[name].read_text(encoding="utf-8")
    path = Path(name)
    if path.suffix not in (".yaml", ".yml") and not os.path.exists(path):  # never raises
        raise unknown("cell (neither shipped nor the path of a file)", name, shipped)
    return name, read_text(path)


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not UTF-8 text"
        raise ConfigError(f"cannot be read: {reason}", file=str(path)) from None
