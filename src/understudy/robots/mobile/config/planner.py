"""`planner` of a cell file: whether and how the cell itself finds routes for its mobile robots.

planner: grid                      # or graph, or off
planner: {kind: graph, graph: aisles.json, grace_s: 0.5}
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.config.document import parse
from understudy.config.typed import read
from understudy.errors import ConfigError, unknown
from understudy.robots.mobile.config.profile import Camel, Identifier, Metres, Radians

Kind = Literal["grid", "graph", "off"]
MOST_NODES, MOST_EDGES = 10_000, 100_000


class PlannerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """``grace_s``: simulated seconds in which a backend can answer. ``resolution_mm``: the size of
    the cells of the grid. ``graph``: the file with nodes and edges."""

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


class Node(Camel, frozen=True):
    """A place where routes can meet. `yaw`: the direction in which a robot stands there at the end
    of its route, unless its task has another one."""

    node_id: Identifier
    x: Metres
    y: Metres
    yaw: Radians | None = None


class Edge(Camel, frozen=True, rename={"start": "from", "end": "to", "one_way": "oneWay"}):
    """A straight way between two nodes."""

    start: Identifier
    end: Identifier
    one_way: bool = False


class Graph(Camel, frozen=True):
    nodes: Annotated[tuple[Node, ...], Meta(max_length=MOST_NODES)]
    edges: Annotated[tuple[Edge, ...], Meta(max_length=MOST_EDGES)]


def read_graph(text: str, file: str) -> Graph:
    """A graph file; every error names file, line, key, value and what is allowed."""
    document = parse(text, file)
    try:
        graph: Graph = read(document.value, Graph)
        _check(graph)
    except ConfigError as problem:
        raise document.error((), problem) from None
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
