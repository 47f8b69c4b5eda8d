"""The cells of a pallet that an arm cannot reach, found before the first part is picked."""

from collections.abc import Callable, Sequence

from understudy.jobs.pick_place.pallet.layout import PalletLayout
from understudy.space.pose import Pose

Reachable = Callable[[Sequence[Pose]], Sequence[bool]]
"""Whether an arm, with its tool, reaches each of these poses."""
MOST_NAMED = 8
"""Cells that a message names."""


def unreachable(
    pallet: PalletLayout, check: Reachable, *, approach: float = 0.0
) -> tuple[int, ...]:
    """Indices of the cells whose place pose, or whose pose ``approach`` metres above it, the arm
    cannot reach."""
    heights = (0.0, approach) if approach else (0.0,)
    poses = (pallet.pose(index) for index in range(pallet.total))
    able = list(check([at._replace(z=at.z + height) for at in poses for height in heights]))
    rows = zip(*(able[start :: len(heights)] for start in range(len(heights))), strict=True)
    return tuple(index for index, row in enumerate(rows) if not all(row))


def unreachable_message(pallet: PalletLayout, indices: Sequence[int]) -> str:
    """The sentence that names these cells."""
    cells = [pallet.cells[index].tolist() for index in indices[:MOST_NAMED]]
    named = ", ".join(f"{i} (row {r}, column {c}, layer {n})"
                      for i, (r, c, n) in zip(indices, cells, strict=False))  # fmt: skip
    more = f" and {len(indices) - MOST_NAMED} more" if len(indices) > MOST_NAMED else ""
    return (
        f"the arm cannot reach {len(indices)} of {pallet.total} cells of the "
        f"pallet: {named}{more}; change origin, corner2 or the pitch"
    )
