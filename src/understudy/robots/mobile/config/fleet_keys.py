"""The key `fleet` of a cell file: what all mobile robots of the cell share.

`planner`: whether and how the cell itself finds routes for its robots.

planner: grid                      # or graph, or off
planner: {kind: graph, graph: aisles.json, grace_s: 0.5}
robots_see_each_other: true
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.config.document import parse
from understudy.errors import ConfigError, unknown
from understudy.robots.mobile.config.profile import (
    MOST_OBSTACLES,
    BarcodeMarker,
    Camel,
    Identifier,
    Metres,
    Radians,
    Text,
)
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.units import DEG

Kind = Literal["grid", "graph", "off"]
MOST_NODES, MOST_EDGES = 10_000, 100_000


class PlannerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How the cell finds routes by itself. ``grace_s``: simulated seconds in which a backend can
    answer first. ``resolution_mm``: the size of a cell of the grid. ``graph``: the file with nodes
    and edges."""

    kind: Kind = "grid"
    grace_s: Annotated[float, Meta(ge=0, le=9)] = 1.0
    resolution_mm: Annotated[float, Meta(ge=10, le=10_000)] = 100.0
    graph: Annotated[str, Meta(max_length=1024)] | None = None


Planner = PlannerConfig | Kind
"""What a cell file may have under `fleet.planner`."""


def planner_config(value: Planner) -> PlannerConfig:
    """The whole configuration; raises a `ConfigError` if `graph` does not fit the kind."""
    config = value if isinstance(value, PlannerConfig) else PlannerConfig(kind=value)
    if config.kind == "graph" and config.graph is None:
        raise ConfigError("this key is missing", key="graph", allowed="a file with nodes and edges")
    if config.kind != "graph" and config.graph is not None:
        raise ConfigError("only `kind: graph` has a file", key="graph", value=config.graph)
    return config


# ── the graph ───────────────────────────────────────────────────────────────────────────────────


class GraphNode(Camel, frozen=True):
    """A place where routes can meet. `yaw`: the direction in which a robot stands there at the end
    of its route, unless its task has another one."""

    node_id: Identifier
    x: Metres
    y: Metres
    yaw: Radians | None = None


class GraphEdge(Camel, frozen=True, rename={"start": "from", "end": "to", "one_way": "oneWay"}):
    """A straight way between two nodes."""

    start: Identifier
    end: Identifier
    one_way: bool = False


class Graph(Camel, frozen=True):
    nodes: Annotated[tuple[GraphNode, ...], Meta(max_length=MOST_NODES)]
    edges: Annotated[tuple[GraphEdge, ...], Meta(max_length=MOST_EDGES)]


def read_graph(text: str, file: str) -> Graph:
    """A graph file; every error names file, line, key, value and what is allowed."""
    document = parse(text, file)
    graph = document.read(Graph)
    document.at((), _check, graph)
    return graph


def _check(graph: Graph) -> None:
    if not graph.nodes:
        raise ConfigError("a graph needs a node", key="nodes")
    known: set[str] = set()
    for number, node in enumerate(graph.nodes):
        if node.node_id in known:
            key = f"nodes.{number}.nodeId"
            raise ConfigError("two nodes have this nodeId", key=key, value=node.node_id)
        known.add(node.node_id)
    for number, edge in enumerate(graph.edges):
        for key, name in (("from", edge.start), ("to", edge.end)):
            if name not in known:
                raise unknown("node", name, known, key=f"edges.{number}.{key}")


# ── seeds ─────────────────────────────────────────────────────────────────────────────────────────


def seed_of(robot: RobotFile, option: int | None, cell: int) -> int:
    """The seed that counts: ``option`` (`--seed`), else `randomSeed`, else that of the cell.

    Robots with the same seed draw other numbers: `robotId` is part of the name of every draw.
    """
    profile = robot.runtime.simulation_profile
    own = profile.random_seed if profile else None
    return next(seed for seed in (option, own, cell) if seed is not None)


# ── the key `fleet` ───────────────────────────────────────────────────────────────────────────────

Degrees = Annotated[float, Meta(ge=-1e6, le=1e6)]


class Marker(Struct, frozen=True, forbid_unknown_fields=True):
    """A code on the floor or on a wall, which scanners of robots read that come near."""

    code: Text
    x_m: Metres
    y_m: Metres
    yaw_deg: Degrees | None = None
    type: Text | None = None

    def built(self) -> BarcodeMarker:
        yaw = None if self.yaw_deg is None else self.yaw_deg * DEG
        return BarcodeMarker(self.code, self.x_m, self.y_m, yaw, self.type)


MANY = 500
"""Robots whose states, sent at one tick, keep a broker busy for some milliseconds."""


class FleetKeys(Struct, frozen=True, forbid_unknown_fields=True):
    """The key `fleet`. `planner`: finds routes if no backend does. `markers`: in addition to those
    of the robots' profiles. `robots_see_each_other`: simulated robots are obstacles of each other;
    all of them are then in one process. `spread_messages`: the robots send the messages of their
    streams at different ticks, each at those that follow from its robotId; by default from `MANY`
    robots on."""

    planner: Planner = "grid"
    robots_see_each_other: bool = False
    spread_messages: bool | None = None
    markers: Annotated[tuple[Marker, ...], Meta(max_length=MOST_OBSTACLES)] = ()


def spreads(keys: FleetKeys, robots: int) -> bool:
    """Whether a fleet with this number of robots spreads its messages over the ticks."""
    return robots >= MANY if keys.spread_messages is None else keys.spread_messages


class DividedKeys(FleetKeys, frozen=True):
    """The keys in a shard. `elsewhere`: the robots of all other shards; None: another shard reports
    messages for robots that do not exist."""

    elsewhere: tuple[str, ...] | None = None


def divided(keys: FleetKeys, robots: int, elsewhere: Sequence[str] | None) -> DividedKeys:
    """The keys of a shard; a `ConfigError` if the robots cannot be divided among processes.
    ``robots``: their number in the whole fleet."""
    if keys.robots_see_each_other:
        raise ConfigError(
            "robots that see each other are all in one process: leave out --shard",
            key="fleet.robots_see_each_other",
            value=True,
            allowed="false with --shard",
        )
    names = None if elsewhere is None else tuple(elsewhere)
    kept = {key: getattr(keys, key) for key in FleetKeys.__struct_fields__}
    return DividedKeys(**kept | {"spread_messages": spreads(keys, robots)}, elsewhere=names)


Config = FleetKeys
