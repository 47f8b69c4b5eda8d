"""Which links of arms can touch each other: kept on disk, and found by a worker process.

The analysis of an arm of meshes takes seconds. Its result is a file, named by the digest of the
arm, in the cache folder of the user.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from understudy.ports import Component
from understudy.simulation.environment import SeesEnvironment
from understudy.space.collision.pair_store import SelfPairs, known, use_store

if TYPE_CHECKING:
    from understudy.simulation.collision.body import Body

FOLDER_VARIABLE = "UNDERSTUDY_CACHE_DIR"


def cache_folder() -> Path:
    """$UNDERSTUDY_CACHE_DIR; else `understudy` in $XDG_CACHE_HOME or ~/.cache."""
    if own := os.environ.get(FOLDER_VARIABLE):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "understudy"


class PairFiles:
    """A `Store`. A file that cannot be read counts as missing; one that cannot be written, too."""

    def load(self, key: str) -> SelfPairs | None:
        try:
            return msgspec.json.decode(_file(key).read_bytes(), type=SelfPairs)
        except (OSError, msgspec.MsgspecError):
            return None

    def save(self, key: str, pairs: SelfPairs) -> None:
        file = _file(key)
        part = file.with_suffix(f".{os.getpid()}.part")
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(msgspec.json.encode(pairs))
            part.replace(file)


def _file(key: str) -> Path:
    return cache_folder() / "self_pairs" / f"{key}.json"


def keep_pairs_on_disk() -> None:
    use_store(PairFiles())


def mesh_bodies(components: Mapping[str, Component]) -> dict[str, "Body"]:
    """The bodies of meshes whose pairs are to be found, by the name of their collision watch."""
    if not any(isinstance(component, SeesEnvironment) for component in components.values()):
        return {}  # without loading compiled code
    from understudy.simulation.collision.watch import CollisionWatch

    watches = {
        name: component
        for name, component in components.items()
        if isinstance(component, CollisionWatch)
    }
    return {
        name: watch.body
        for name, watch in watches.items()
        if watch.body.meshes
        and watch.body.rules.check_self_collision
        and watch.body.rules.self_collision_pairs == "auto"
    }


def digest_of(body: "Body") -> str:
    from understudy.space.collision.self_pairs import digest
    from understudy.space.collision.world import arm_parts

    return digest(body.chain, arm_parts(body.chain, body.meshes))


def unknown_bodies(components: Mapping[str, Component]) -> dict[str, str]:
    """The digests of the bodies whose pairs are not known yet."""
    digests = {name: digest_of(body) for name, body in mesh_bodies(components).items()}
    return {name: key for name, key in digests.items() if known(key) is None}
