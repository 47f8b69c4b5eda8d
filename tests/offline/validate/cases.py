"""Program files of the tests; their headers name the cell and the expected result."""

from functools import cache
from pathlib import Path

from understudy.app.validate import Options, validate_text
from understudy.config import CellConfig, load_config, shipped_cells
from understudy.offline.validate.report import Report

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"


def programs(kind: str) -> list[Path]:
    return sorted((PROGRAMS / kind).glob("*.gcode"))


def header(program: Path, word: str) -> str:
    """The text after `; word: ` in the first lines."""
    lines = program.read_text().splitlines()[:2]
    return next(line.split(": ", 1)[1] for line in lines if line.startswith(f"; {word}: "))


@cache
def cell(name: str) -> CellConfig:
    return load_config(name if name in shipped_cells() else str(HERE / "cells" / f"{name}.yaml"))


def proved(program: Path, options: Options | None = None) -> Report:
    found = cell(header(program, "cell"))
    return validate_text(
        program.read_bytes(), found, options=options or Options(), program=program.name
    )


def proved_text(text: str, name: str = "bare", options: Options | None = None) -> Report:
    return validate_text(text, cell(name), options=options or Options())
