"""Long queries about a cell, in worker processes: the cell's time never waits for them."""

from understudy.operator.background.runner import KINDS, BackgroundRuns, run_commands

__all__ = ["KINDS", "BackgroundRuns", "run_commands"]
