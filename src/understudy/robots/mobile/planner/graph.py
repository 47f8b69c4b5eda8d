"""The shortest way over the nodes of a graph (Dijkstra)."""

import heapq
import math
from collections.abc import Mapping

from understudy.errors import Refused
from understudy.robots.mobile.config.planner import Graph, Node

Point = tuple[float, float]


class RoadMap:
    """A graph, prepared for searches. Equal ways: that through the nodes that are listed first."""

    def __init__(self, graph: Graph) -> None:
        self._nodes: Mapping[str, Node] = {node.node_id: node for node in graph.nodes}
        self._order = {name: number for number, name in enumerate(self._nodes)}
        self._next: dict[str, list[tuple[str, float]]] = {name: [] for name in self._nodes}
        for edge in graph.edges:
            length = math.dist(self._point(edge.start), self._point(edge.end))
            self._next[edge.start].append((edge.end, length))
            if not edge.one_way:
                self._next[edge.end].append((edge.start, length))

    def way(self, start: Point, goal: Point) -> list[Node] | Refused:
        """The nodes from that nearest to the start to that nearest to the goal."""
        first, last = self._nearest(start), self._nearest(goal)
        before: dict[str, str | None] = {}
        heap: list[tuple[float, int, str, str | None]] = [(0.0, 0, first, None)]
        while heap:
            length, _, name, came_from = heapq.heappop(heap)
            if name in before:
                continue
            before[name] = came_from
            if name == last:
                return self._traced(before, last)
            for other, more in self._next[name]:
                if other not in before:
                    heapq.heappush(heap, (length + more, self._order[other], other, name))
        return Refused(f"no way in the graph from node {first} to node {last}")

    def _traced(self, before: Mapping[str, str | None], last: str) -> list[Node]:
        way, name = [], last
        while True:
            way.append(self._nodes[name])
            came_from = before[name]
            if came_from is None:
                return way[::-1]
            name = came_from

    def _nearest(self, point: Point) -> str:
        return min(self._nodes, key=lambda name: math.dist(self._point(name), point))

    def _point(self, name: str) -> Point:
        return self._nodes[name].x, self._nodes[name].y
