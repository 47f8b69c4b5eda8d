"""`planner` of a cell file, and graph files."""

from typing import Any

import pytest

from understudy.config.typed import read
from understudy.errors import ConfigError
from understudy.robots.mobile.config.fleet_keys import (
    Planner,
    PlannerConfig,
    planner_config,
    read_graph,
)

NODES = "nodes: [{nodeId: a, x: 0, y: 0}, {nodeId: b, x: 1, y: 0, yaw: 1.5}]\n"


def config(value: Any) -> PlannerConfig:
    return planner_config(read(value, Planner, "planner"))


def test_a_kind_alone_has_the_defaults() -> None:
    assert config("grid") == PlannerConfig("grid", 1.0, 100.0, None)
    assert config("off").kind == "off"
    assert config({"grace_s": 0.5}) == PlannerConfig("grid", 0.5)
    assert config({"kind": "graph", "graph": "aisles.json"}).graph == "aisles.json"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("graph", "graph: this key is missing"),
        ({"kind": "grid", "graph": "g.json"}, "only `kind: graph` has a file"),
        ({"kind": "graph", "grace": 1}, "did you mean 'grace_s'"),
        ("map", "planner"),
        ({"resolution_mm": 1}, "resolution_mm"),
    ],
)
def test_mistakes_are_named(value: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        config(value)


def test_a_graph_is_read() -> None:
    graph = read_graph(NODES + "edges: [{from: a, to: b, oneWay: true}]", "g.json")
    assert [(node.node_id, node.yaw) for node in graph.nodes] == [("a", None), ("b", 1.5)]
    assert [(edge.start, edge.end, edge.one_way) for edge in graph.edges] == [("a", "b", True)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NODES + "edges: [{from: a, to: c}]", r"g.json:2: edges.0.to: unknown node \(got 'c'\)"),
        (NODES + "edges: [{from: a, to: b, oneway: true}]", "did you mean 'oneWay'"),
        ("nodes: [{nodeId: a, x: 0, y: 0}, {nodeId: a, x: 1, y: 0}]\nedges: []", "two nodes"),
        ("nodes: []\nedges: []", "nodes"),
    ],
)
def test_mistakes_in_a_graph_are_named(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_graph(text, "g.json")
