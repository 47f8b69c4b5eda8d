"""How lines and programs end, and who is told."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from understudy.errors import Refused
from understudy.ports import Finished, Ticket
from understudy.robots.grblhal.driver.lines import Lines
from understudy.robots.grblhal.driver.talk import Said

LineListener = Callable[[int, Refused | None, int], None]
"""Told of a line's number when the controller has taken it (None), or why it did not."""

NOT_SENT = "Not sent. "


class Ends:
    """Whoever wants to know."""

    def __init__(self) -> None:
        self.line_listeners: list[LineListener] = []
        self.job_listeners: list[Finished] = []

    def line(self, number: int, outcome: Refused | None, now: int) -> None:
        """Number 0 is a line of our own."""
        for listener in self.line_listeners if number else ():
            listener(number, outcome, now)

    def job(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        for listener in self.job_listeners:
            listener(ticket, outcome, now)

    def lost(self, said: Iterable[Said], why: Refused, now: int) -> None:
        """Lines that were said, and that nobody will answer."""
        for number in dict.fromkeys(each.number for each in said if each.kind == "line"):
            self.line(number, why, now)

    def unsaid(self, lines: Lines, why: Refused, now: int, number: int = 0) -> None:
        """Lines that waited, and the program they belong to; ``number``: the one that failed."""
        job, lines.job = lines.job, None
        outcome = replace(why, reason=NOT_SENT + why.reason)
        for dropped in lines.drop():
            if dropped != number:
                self.line(dropped, outcome, now)
        if job is not None:
            place = f"line {number}: " if number else f"{job.taken} of {job.read} lines taken; "
            self.job(job.ticket, replace(why, reason=place + why.reason), now)
