"""The way of a long program, as a run: what takes seconds does not take them from the cell."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from understudy.app import mover_of
from understudy.config.typed import read
from understudy.jobs.preview import preview as preview_of
from understudy.runs.reach import CellName, loaded
from understudy.runs.worker import Progress

Radians = Annotated[list[float], Meta(max_length=100)]


class Asked(Struct, frozen=True, forbid_unknown_fields=True):
    """``start_rad``: the joints it begins from; none: where the robot begins its life."""

    cell: CellName
    robot: str
    text: str
    start_rad: Radians = []


def preview(parameters: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """What the desk's `preview` answers."""
    asked: Asked = read(parameters, Asked)
    setup = mover_of(loaded(asked.cell), asked.robot)
    return preview_of(asked.text, setup, tuple(asked.start_rad))
