"""`python witness_cell.py FILE run …`: understudy that writes the id of each command into a file
when its motion begins. The file is whole after `kill -9`, and needs no server."""

import os
import sys
from typing import Any

from understudy.__main__ import main
from understudy.robots.mobile.runtime.executor import RowBody
from understudy.robots.mobile.runtime.robot import Robot


def note_motions(file: str) -> None:
    out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    build: Any = Robot.__init__
    begin: Any = RowBody.begin

    def built(robot: Robot, *given: Any) -> None:
        build(robot, *given)
        robot.body.robot = robot  # type: ignore[attr-defined]

    def begun(body: RowBody, *given: Any) -> Any:
        command = body.robot.executor.active  # type: ignore[attr-defined]
        os.write(out, f"{command.message_id}\n".encode())
        return begin(body, *given)

    Robot.__init__ = built  # type: ignore[assignment, method-assign]
    RowBody.begin = begun  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    note_motions(sys.argv.pop(1))
    sys.exit(main())
