"""The demo: a cell that works by itself, breaks on request, and shows how to talk to its robots.

The key `demo` of a cell file switches it on. It is an operator, not a part of the cell: it gives
orders by the command table while time runs by itself, and none in lock-step. `understudy demo` runs
the shipped cell `demo` with its page.
"""
