"""The ids of handled messages, so that a message that is delivered again has no effect."""

from collections import OrderedDict
from collections.abc import Iterable

REMEMBERED = 1000


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

    def save(self) -> list[str]:
        return list(self._ids)
