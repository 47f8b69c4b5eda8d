"""Triangles in a tree of boxes, grown once when a mesh is read."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.space.transform import Array

LEAF = 2
"""Triangles in a leaf."""


class Tree(NamedTuple):
    corners: Array
    """(m, 3, 3): the triangles in the order of the leaves."""
    nodes: Array
    """(k, 7): centre, half extents, radius; node 0 holds all."""
    children: NDArray[np.int64]
    """(k, 2): the numbers of two nodes, or -1 - first triangle and the number of triangles."""


def grown(corners: Array) -> Tree:
    """Halves the triangles along the longest side, again and again."""
    middles = corners.mean(axis=1)
    nodes: list[Array] = []
    children: list[list[int]] = []
    order: list[NDArray[np.int64]] = []
    laid = 0
    waiting: list[tuple[NDArray[np.int64], int]] = [(np.arange(len(corners)), -1)]
    while waiting:
        chosen, parent = waiting.pop()
        if parent >= 0:
            children[parent][0 if children[parent][0] == 0 else 1] = len(nodes)
        nodes.append(_node(corners[chosen]))
        if len(chosen) <= LEAF:
            children.append([-1 - laid, len(chosen)])
            order.append(chosen)
            laid += len(chosen)
            continue
        span = np.ptp(middles[chosen], axis=0)
        along = middles[chosen, int(np.argmax(span))]
        half = len(chosen) // 2
        ranked = chosen[np.argpartition(along, half)]
        children.append([0, 0])
        waiting += [(ranked[half:], len(nodes) - 1), (ranked[:half], len(nodes) - 1)]
    return Tree(corners[np.concatenate(order)], np.array(nodes), np.array(children))


def _node(corners: Array) -> Array:
    points = corners.reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    away = float(np.linalg.norm(points - middle, axis=1).max())
    return np.array([*middle, *((high - low) / 2), away])
