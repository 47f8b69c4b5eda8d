"""Long queries about a cell, each in a process of its own: the cell's time never waits for them."""

from understudy.runs.commands import run_commands
from understudy.runs.runner import KINDS, Runs

__all__ = ["KINDS", "Runs", "run_commands"]
