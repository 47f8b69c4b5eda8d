"""More robots than the cell file has, and a part of them for one process of several.

Robots of a kind that is built in one call (mobile robots) can be multiplied, and divided among
processes (shards). What a robot does depends on the cell, its seed and its name alone, so it does
the same in every division.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from understudy.config.cell import CellConfig, RobotConfig, grouped, is_group, wires_of_groups
from understudy.config.limits import MOST_ROWS, MOST_SHARDED
from understudy.errors import ConfigError
from understudy.registry import module_of

MOST_SHARDS = 10_000


class Shard(NamedTuple):
    """The process ``number`` of ``of``, from 1 on."""

    number: int
    of: int


def parse_shard(text: str) -> Shard:
    """`3/10`."""
    found = re.fullmatch(r"([0-9]{1,5})/([0-9]{1,5})", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]) <= MOST_SHARDS:
        raise ConfigError("--shard", value=text, allowed=f"K/N with 1 ≤ K ≤ N ≤ {MOST_SHARDS}")
    return Shard(int(found[1]), int(found[2]))


def _check_number(count: int, shards: int) -> None:
    """The number of robots that are rows of tables, one table in each shard."""
    most = min(MOST_ROWS * shards, MOST_SHARDED)
    if not 1 <= count <= most:
        raise ConfigError(
            "--robots", value=count, allowed=f"1 to {most}: {MOST_ROWS} a process (--shard K/N)"
        )


def with_robots(config: CellConfig, count: int, shards: int = 1) -> CellConfig:
    """The cell with ``count`` robots of the kind that can be many: those of the file, and copies of
    them, one after the other. A kind with `place_copies` spreads its copies over the free floor.
    ``shards``: the number of processes that share them."""
    originals = {name: robot for name, robot in config.robots.items() if is_group(robot.kind)}
    if not originals:
        raise ConfigError(
            f"--robots: the cell {config.name} has no mobile robots", value=count, allowed="none"
        )
    _check_number(count, shards)
    chosen = dict(list(originals.items())[:count])
    stem = next(iter(originals)).rstrip("0123456789")
    stem, number = stem if stem.endswith(("-", "_")) else f"{stem}-", 0
    robots = list(originals.values())
    while len(chosen) < count:
        number += 1
        name = f"{stem}{number}"
        if name not in config.robots:
            chosen[name] = _without_faces(robots[len(chosen) % len(robots)])
    for kind, group in grouped(chosen).items():
        place = getattr(module_of("robots", kind), "place_copies", None)
        copies = [name for name in group if name not in originals]
        if place is not None and copies:
            placed = place(group, copies, config.surroundings(), config.read_file)
            chosen |= {
                name: structs.replace(chosen[name], config=own) for name, own in placed.items()
            }
    others = {name: robot for name, robot in config.robots.items() if name not in originals}
    return _with(config, {**others, **chosen})


def with_shard(
    config: CellConfig, shard: Shard, endpoints: Mapping[str, str] | None = None
) -> CellConfig:
    """The robots of one shard; robots and devices of other kinds are in the first one.
    ``endpoints``: where the first shard listens, if it is running already.

    Mobile robots are dealt out in the order of the cell: of 10 shards the first one has robot 1,
    11, 21, …. If the cell has a NATS server of its own, it is that of the first shard, and the
    others connect to it.
    """
    first = shard.number == 1
    divided = [name for name, robot in config.robots.items() if is_group(robot.kind)]
    own = set(divided[shard.number - 1 :: shard.of])
    robots = {
        name: robot
        for name, robot in config.robots.items()
        if name in own or (first and not is_group(robot.kind))
    }
    if not robots:
        raise ConfigError(
            f"--shard: no robot of the cell {config.name} is in shard {shard.number} of "
            f"{shard.of}: there are more shards than robots"
        )
    sections = config.sections
    for kind, group in grouped(config.robots).items() if shard.of > 1 else ():
        divide = getattr(module_of("robots", kind), "sections_of_shard", None)
        if divide is not None:
            elsewhere = [name for name in group if name not in own] if first else None
            sections = divide(sections, len(group), elsewhere)
    kept = replace(config, devices=config.devices if first else {}, sections=sections)
    return _with(kept, robots, None if first else endpoints or {})


def _without_faces(robot: RobotConfig) -> RobotConfig:
    """A copy has no endpoint of its own: two would have the same port."""
    return RobotConfig(robot.kind, robot.config, {}, robot.real, robot.devices, robot.program)


def _with(
    config: CellConfig,
    robots: dict[str, RobotConfig],
    first_shard: Mapping[str, str] | None = None,
) -> CellConfig:
    """The cell with these robots. ``first_shard``: endpoints of the process with the servers; None:
    it is this one."""
    sections = config.sections
    if first_shard is not None:
        for kind in {robot.kind for robot in robots.values() if is_group(robot.kind)}:
            sections = module_of("robots", kind).sections_beside_first_shard(sections, first_shard)
    wires = wires_of_groups(robots, sections, config.document.file)
    return replace(config, robots=robots, group_wires=wires)
