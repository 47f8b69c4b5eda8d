"""`understudy send` to an arm behind grblHAL, in grblHAL's dialect or in the arm's own.

A program in the arm's own dialect becomes joint lines on this host; a cell file names the arm.
"""

from typing import Literal

from understudy.ports.operation import Sender, SendOptions
from understudy.robots.grblhal import driver as grblhal
from understudy.robots.grblhal.driver import Config

DIALECTS: tuple[Literal["grblhal", "arm"], ...] = ("grblhal", "arm")


def stream(text: str, options: SendOptions) -> grblhal.LineStream:
    dialect = next(each for each in DIALECTS if each == options.dialect)
    cell = options.cell or ("default" if dialect == "arm" else "")
    if not cell:
        return grblhal.stream(text, options)
    from understudy.config import load_config
    from understudy.robots.arm.real import driver_of  # loads compiled code

    settings = Config(dialect=dialect, poll_ms=grblhal.POLL_MS)
    return grblhal.LineStream(driver_of(load_config(cell), "", settings), text)


SENDER = Sender("grblhal", "grblhal", unit="lines", read=stream, dialects=DIALECTS)
