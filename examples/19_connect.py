"""A script beside a running cell: another process, another language version, another machine.

    python 19_connect.py [NAME]     a cell that `understudy run` has started

Without a name it starts the shipped cell `text_robot` itself.
"""

import sys
from contextlib import ExitStack

import understudy

with ExitStack() as ends:
    if len(sys.argv) > 1:
        cell = understudy.connect(sys.argv[1])
    else:
        started = ends.enter_context(understudy.StandIn("text_robot"))
        control = started.endpoints["control"].removeprefix("tcp://")
        cell = understudy.connect(to=control, token=started.secret)

    with cell:
        saved = cell.snapshot()
        cell.forward(seconds=2)
        for robot in cell.robots().values():
            print(f"{cell.now:.1f} s  {robot.name}: {robot.state}, {robot.addresses}")
        first = next(iter(cell.robots()))
        cell.inject("emergency_stop", on=first)
        print(f"{first}: {cell.robots()[first].state}")
        cell.restore(saved)
        print(f"{cell.now:.1f} s  {first}: {cell.robots()[first].state}")
