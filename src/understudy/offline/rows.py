"""The lines of a program with their times, in columns: some dozen bytes for each line."""

from abc import abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from typing import Literal, TypeVar, get_args, overload

import numpy as np
from msgspec import Struct

from understudy.motion.path import Ints

Item = TypeVar("Item", covariant=True)
Kind = Literal["motion", "process", "dwell", "io", "refused", ""]
KINDS: tuple[Kind, ...] = get_args(Kind)
NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


class Row(Struct, frozen=True, gc=False):
    """A line of the program, and when it is run.

    `kind`: what most of its time is; empty if the line only sets modes.
    """

    line: int
    text: str
    start_s: float
    end_s: float
    kind: Kind

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


class ReadOnDemand(Sequence[Item]):
    """Items in columns; each is made when it is read. Equal to any sequence of equal items."""

    @abstractmethod
    def _item(self, k: int) -> Item:
        """The item at index ``k``, which is in range."""

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self._item(k) for k in range(*index.indices(len(self)))]
        return self._item(range(len(self))[index])

    def __iter__(self) -> Iterator[Item]:
        return (self._item(k) for k in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"<{len(self)} lines>"


class Rows(ReadOnDemand[Row]):
    """Rows in the order of the program."""

    def __init__(self) -> None:
        self._line = array("q")
        self._start = array("d")
        self._end = array("d")
        self._kind = bytearray()
        self._text = bytearray()
        self._text_ends = array("q", [0])

    def append(self, line: int, text: str, start_s: float, end_s: float, kind: Kind) -> None:
        self._line.append(line)
        self._start.append(start_s)
        self._end.append(end_s)
        self._kind.append(NUMBERS[kind])
        self._text += text.encode("utf-8", "surrogatepass")
        self._text_ends.append(len(self._text))

    def __len__(self) -> int:
        return len(self._line)

    @property
    def numbers(self) -> Ints:
        """The line numbers."""
        return np.frombuffer(self._line, dtype=np.int64)

    def run_texts(self) -> Iterator[str]:
        """The texts of the lines that were not refused."""
        refused = NUMBERS["refused"]
        return (self._text_of(k) for k, kind in enumerate(self._kind) if kind != refused)

    def start_of(self, line: int) -> float:
        """When a line begins; 0 if there is no such line."""
        k = int(np.searchsorted(self.numbers, line))
        return self._start[k] if k < len(self) and self._line[k] == line else 0.0

    def _item(self, k: int) -> Row:
        kind = KINDS[self._kind[k]]
        return Row(self._line[k], self._text_of(k), self._start[k], self._end[k], kind)

    def _text_of(self, k: int) -> str:
        text = self._text[self._text_ends[k] : self._text_ends[k + 1]]
        return text.decode("utf-8", "surrogatepass")
