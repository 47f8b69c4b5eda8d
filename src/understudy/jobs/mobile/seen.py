"""Ids of messages that were handled, so that each message is handled once."""

from collections import OrderedDict
from collections.abc import Sequence

REMEMBERED = 10_000


class SeenIds:
    """The newest ids; the oldest are forgotten."""

    def __init__(self, capacity: int = REMEMBERED) -> None:
        self._capacity = capacity
        self._ids: OrderedDict[str, None] = OrderedDict()

    def is_new(self, message_id: str) -> bool:
        """Notes the id; False if it was noted before."""
        if message_id in self._ids:
            return False
        self._ids[message_id] = None
        if len(self._ids) > self._capacity:
            self._ids.popitem(last=False)
        return True

    def save(self) -> list[str]:
        return list(self._ids)

    def load(self, ids: Sequence[str]) -> None:
        self._ids = OrderedDict.fromkeys(ids[-self._capacity :])
