"""One command surface: the table of what can be asked of a cell, behind every door."""

from understudy.desk.table import Command, Commands, Role

__all__ = ["Command", "Commands", "Role"]
