"""Validation of a program as background work in a worker process."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from understudy.app.background_reach import CellName, loaded
from understudy.app.validate import Options, validate_text
from understudy.config.typed import read
from understudy.operator.background.worker import Progress


class Asked(Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters. ``name``: of the program in the report."""

    cell: CellName
    text: str
    robot: str = ""
    name: str = ""
    clearance_mm: Annotated[float, Meta(ge=0)] | None = None
    with_stops: bool = False


def validate(parameters: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """The report, as `understudy validate --json` writes it."""
    asked: Asked = read(parameters, Asked)

    def report_progress(done: int, total: int) -> bool:
        progress(done / total)
        return True

    options = Options(
        robot=asked.robot, clearance_mm=asked.clearance_mm, with_stops=asked.with_stops
    )
    report = validate_text(
        asked.text,
        loaded(asked.cell),
        options=options,
        program=asked.name,
        progress=report_progress,
    )
    return report.document()
