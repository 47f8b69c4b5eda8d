"""The ids of handled messages, so that a message that is delivered again has no effect."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

REMEMBERED = 1000
Ids = Annotated[list[str], Meta(max_length=REMEMBERED)]


class HandledIds:
    """The newest ids, in the order in which they came."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict.fromkeys(ids)

    def is_new(self, message_id: str) -> bool:
        """Whether it is the first time that this id comes; it is remembered."""
        if message_id in self._ids:
            return False
        self._ids[message_id] = None
        if len(self._ids) > REMEMBERED:
            self._ids.popitem(last=False)
        return True

    def save(self) -> Ids:
        return list(self._ids)
