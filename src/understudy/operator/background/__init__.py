"""Long queries about a cell, each in a process of its own: the cell's time never waits for them."""

from understudy.operator.background.commands import run_commands
from understudy.operator.background.runner import KINDS, Runs

__all__ = ["KINDS", "Runs", "run_commands"]
