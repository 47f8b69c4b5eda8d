"""A program: its lines, each with its number, its text and what it says or what is wrong."""

from codecs import BOM_UTF8
from collections.abc import Iterator

from msgspec import Struct

from understudy.gcode.blocks import Block
from understudy.gcode.dialect import ARM, Dialect
from understudy.gcode.forms import blocks
from understudy.gcode.reader import read
from understudy.gcode.words import Problem


class ProgramLine(Struct, frozen=True, gc=False):
    number: int
    text: str
    block: Block | Problem


def program_lines(data: bytes | str, dialect: Dialect) -> Iterator[ProgramLine]:
    """All lines of a program, empty ones too; numbers count from 1.

    Column n of a problem is the n-th byte of its line; the text is read as UTF-8, and the mark with
    which some editors begin such a file is no part of it.
    """
    source = (data.encode() if isinstance(data, str) else data).removeprefix(BOM_UTF8)
    words = read(source, dialect.spelling)
    places = zip(words.starts.tolist(), words.stops.tolist(), strict=True)
    for (start, stop), block in zip(places, blocks(words, dialect), strict=True):
        yield ProgramLine(block.line, source[start:stop].decode("utf-8", "replace"), block)


def warm() -> None:
    """Compiles the kernels, or loads them from the cache."""
    for _ in program_lines(b"G1 X1.5 F100 (there)\r\n", ARM):
        pass
