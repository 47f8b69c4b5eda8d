"""Kinds of robots that are built in one call: their number, and the endpoints that they share."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from understudy.config.files import find_robot_file
from understudy.config.limits import MOST_ROBOTS, MOST_ROWS, MOST_SHARDED
from understudy.errors import ConfigError
from understudy.registry import kinds, module_of
from understudy.wire.interface import Wire


class OfKind(Protocol):
    """A robot of a cell file."""

    @property
    def kind(self) -> str: ...

    @property
    def config(self) -> Any: ...


def grouped(robots: Mapping[str, OfKind]) -> dict[str, dict[str, Any]]:
    """The configurations of the robots by name, for each kind that builds its robots together."""
    groups: dict[str, dict[str, Any]] = {}
    for name, robot in robots.items():
        if is_group(robot.kind):
            groups.setdefault(robot.kind, {})[name] = robot.config
    return groups


def is_group(kind: str) -> bool:
    return hasattr(module_of("robots", kind), "build_group")


def check_count(bodies: Mapping[str, Mapping[str, Any]]) -> None:
    """A cell has few robots that are computed one by one, and many that are rows of a table.

    ``bodies``: the robots as they stand in the cell file.
    """
    counts = Counter(str(body.get("kind")) for body in bodies.values())
    rows = [kind for kind in counts if kind in kinds("robots") and is_group(kind)]
    single = len(bodies) - sum(counts[kind] for kind in rows)
    for count, most in ((single, MOST_ROBOTS), (len(bodies), MOST_ROWS)):
        if count > most:
            raise ConfigError("too many robots", value=count, allowed=f"at most {most}")


def check_number(count: int, shards: int) -> None:
    """The number of robots that are rows of tables, one table in each shard."""
    most = min(MOST_ROWS * shards, MOST_SHARDED)
    if not 1 <= count <= most:
        raise ConfigError(
            "--robots", value=count, allowed=f"1 to {most}: {MOST_ROWS} a process (--shard K/N)"
        )


def wires_of_groups(
    robots: Mapping[str, OfKind], sections: Mapping[str, Any], cell_file: str
) -> dict[str, Wire]:
    """The wires of shared endpoints by name. ``sections``: of the cell file."""
    wires: dict[str, Wire] = {}
    for kind, own in grouped(robots).items():
        wires |= module_of("robots", kind).group_wires(
            own, sections, lambda name: find_robot_file(name, beside=cell_file)
        )
    return wires
