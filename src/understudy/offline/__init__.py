"""Programs proved on a cell: configuration in, report out."""

from understudy.offline.prove import (
    Cancelled,
    Options,
    Progress,
    cycle_time,
    validate,
    validate_text,
    validate_waypoints,
)

__all__ = [
    "Cancelled", "Options", "Progress", "cycle_time", "validate", "validate_text",
    "validate_waypoints",
]  # fmt: skip
