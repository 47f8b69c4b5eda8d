"""A program: its lines, each with its number, its text and what it says or what is wrong."""

from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import NamedTuple

from understudy.gcode.blocks import Block, build
from understudy.gcode.dialect import Dialect
from understudy.gcode.reader import read
from understudy.gcode.words import Problem


class ProgramLine(NamedTuple):
    number: int
    text: str
    block: Block | Problem


def program_lines(data: bytes | str, dialect: Dialect) -> Iterator[ProgramLine]:
    """All lines of a program, empty ones too; numbers count from 1.

    Column n of a problem is the n-th byte of its line; the text is read as UTF-8, and the mark with
    which some editors begin such a file is no part of it.
    """
    source = (data.encode() if isinstance(data, str) else data).removeprefix(BOM_UTF8)
    for number, (text, words) in enumerate(read(source, dialect.spelling).lines(), 1):
        block = build(words, dialect, line=number)
        if not text.isascii():
            text = text.encode("latin-1").decode("utf-8", "replace")
        yield ProgramLine(number, text, block)
