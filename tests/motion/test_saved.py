"""Plans in snapshots: short pieces have large coefficients, and places have bounds all the same."""

from typing import Any

import msgspec
import pytest

from understudy.motion.saved import LARGEST, plan_from

SHORT = 4e-6
"""The length of the first piece of a straight line that begins where the wrist is stretched."""


def state_of(shape: list[list[list[float]]], length: float) -> dict[str, Any]:
    one: dict[str, list[Any]] = {
        name: [0.0] for name in ("fastest", "feed", "junction", "dwell")
    } | {name: [0] for name in ("measure", "block", "line")}
    path = one | {
        "shape": shape,
        "end": [[0.0]],
        "length": [length],
        "acceleration": [1.0],
        "jerk": [1.0],
        "rapid": [False],
        "fixed": [False],
        "shape_of_shape": [1, len(shape[0]), 1],
    }
    law = {"begins": [0.0, 1.0], "piece": [0], "s": [0.0], "v": [0.0], "a": [0.0], "j": [0.0]}
    return {"path": path, "law": law, "target": [0.0]}


def test_a_short_piece_has_large_coefficients() -> None:
    shape = [[[0.0], [1.0], [1.0], [1.0 / SHORT**3]]]
    assert len(plan_from(state_of(shape, SHORT), 1).path) == 1


@pytest.mark.parametrize(
    ("rows", "length"),
    [([2 * LARGEST, 0, 0, 0], SHORT), ([0, 0, 0, 1e16], 1.0), ([0, 0, 0, 1e300], SHORT)],
)
def test_a_place_out_of_bounds_is_refused(rows: list[float], length: float) -> None:
    with pytest.raises(msgspec.ValidationError, match="shape"):
        plan_from(state_of([[[float(row)] for row in rows]], length), 1)
