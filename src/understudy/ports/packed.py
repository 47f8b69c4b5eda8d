"""Many messages in one piece of data."""

from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import overload

import numpy as np
from numpy.typing import NDArray

from understudy.ports import WireMessage

BEGIN, SPACE, END = b"PUB ", b" ", b"\r\n"


class PackedMessages(Sequence[WireMessage]):
    """Messages without `reply_to`, one behind the other in the form in which a NATS server takes
    them, so that they need not be copied; another reader takes them as a sequence:

        PUB robot.r1.state 11\\r\\n{"x": 0.25}\\r\\n

    ``bounds``: a row for each message, where it begins, where its payload begins, and where it
    ends. The addresses consist of letters, digits and `.-_`.
    """

    __slots__ = ("_bounds", "data")

    def __init__(self, data: bytes, bounds: NDArray[np.int64]) -> None:
        self.data = data
        self._bounds = bounds

    def __len__(self) -> int:
        return len(self._bounds)

    @overload
    def __getitem__(self, place: int) -> WireMessage: ...
    @overload
    def __getitem__(self, place: slice) -> "PackedMessages": ...
    def __getitem__(self, place: int | slice) -> "WireMessage | PackedMessages":
        if isinstance(place, int):
            return self._message(*self._bounds[place].tolist())
        bounds = self._bounds[place]
        if place.step not in (None, 1) or not len(bounds):
            raise ValueError("only messages that follow each other can be cut out")
        first, end = int(bounds[0, 0]), int(bounds[-1, 2])
        return PackedMessages(self.data[first:end], bounds - first)

    def __iter__(self) -> Iterator[WireMessage]:
        return starmap(self._message, self._bounds.tolist())

    def _message(self, begin: int, payload: int, end: int) -> WireMessage:
        address, _, _ = self.data[begin + len(BEGIN) : payload].partition(SPACE)
        return WireMessage(address.decode(), self.data[payload : end - len(END)])

    @property
    def largest(self) -> int:
        """An upper bound of the bytes of each payload."""
        return int((self._bounds[:, 2] - self._bounds[:, 1]).max(initial=0))

    def count_within(self, room: int) -> int:
        """How many of the first messages have at most ``room`` bytes together."""
        return int(np.searchsorted(self._bounds[:, 2], room, side="right"))
