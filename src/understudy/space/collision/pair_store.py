"""Results of the analysis of self-collision pairs, by digest: of this process, and a store.

Needs no compiled code, so that a cell without arms does not load it.
"""

from typing import Protocol

from msgspec import Struct

Pair = tuple[int, int]


class SelfPairs(Struct, frozen=True, forbid_unknown_fields=True):
    """Pairs of indices of parts, smaller index first; also the contents of a file of a store."""

    touchable: tuple[Pair, ...]
    overlapping: tuple[Pair, ...]
    """Pairs that overlap by design, other than links joined by a joint."""


class Store(Protocol):
    """Keeps results beyond the process; a result that cannot be kept is lost silently."""

    def load(self, key: str) -> SelfPairs | None: ...
    def save(self, key: str, pairs: SelfPairs) -> None: ...


MOST_KNOWN = 64
_known: dict[str, SelfPairs] = {}
_stores: list[Store] = []


def use_store(store: Store) -> None:
    """Sets the store of this process."""
    _stores[:] = [store]


def known(key: str) -> SelfPairs | None:
    """The result with this digest, of this process or of the store."""
    for store in _stores if key not in _known else ():
        if (found := store.load(key)) is not None:
            _remember(key, found)
    return _known.get(key)


def keep(key: str, pairs: SelfPairs) -> None:
    """Takes over a result, found here or by another process."""
    _remember(key, pairs)
    for store in _stores:
        store.save(key, pairs)


def _remember(key: str, pairs: SelfPairs) -> None:
    while len(_known) >= MOST_KNOWN:
        del _known[next(iter(_known))]
    _known[key] = pairs
