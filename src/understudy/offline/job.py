"""What a job adds to the report of its validation, and to its cycle time.

A job, unlike a program, has rows of its own: how long each workpiece takes, how long each state of
its cycle lasts. The report offers the place, the job's module fills it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol


class JobTable(NamedTuple):
    """A table for the terminal. `columns`: those with a ">" in front of their name are figures."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class JobRows(Protocol):
    """The rows of a job in its report."""

    def document(self) -> dict[str, Any]:
        """Keys and plain values for the JSON document."""
        ...

    def summary(self) -> str:
        """One line that follows the cycle time in the report of a validation."""
        ...

    def tables(self) -> Sequence[JobTable]:
        """Tables that follow the times in the report of the cycle time."""
        ...
