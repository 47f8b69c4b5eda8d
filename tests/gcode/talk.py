"""A controller for the tests: interprets lines, and returns their requests."""

from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode import (
    ARM,
    Axes,
    Dialect,
    Interpretation,
    KnownPosition,
    Modal,
    Problem,
    after_refusal,
    interpret,
    parse,
)
from understudy.gcode.requests import Request


class Talk:
    """A modal state and a commanded position that follow the lines."""

    def __init__(self, dialect: Dialect = ARM, modal: Modal | None = None) -> None:
        self.dialect = dialect
        self.modal = modal or Modal()
        self.at = KnownPosition()

    def stand(self, *, axes: Axes | None = None, pose: Axes | None = None) -> "Talk":
        self.at = KnownPosition(axes or self.at.axes, pose or self.at.pose)
        return self

    def answer(self, line: str, number: int = 0) -> Interpretation | Refused:
        block = parse(line, self.dialect, line=number)
        if isinstance(block, Problem):
            return block.refused()
        step = interpret(block, self.modal, dialect=self.dialect, position=self.at)
        if isinstance(step, Interpretation):
            self.modal = step.modal
            self.at = replace(
                self.at, axes=step.axes or self.at.axes, pose=step.pose or self.at.pose
            )
            if step.refusal is None:
                return step
            step = step.refusal.refused
        self.modal = after_refusal(self.modal)
        return step

    def say(self, *lines: str) -> list[Request]:
        """The requests of all these lines; each line must be accepted."""
        requests: list[Request] = []
        for line in lines:
            step = self.answer(line)
            assert isinstance(step, Interpretation), f"{line}: {step}"
            requests.extend(step.requests)
        return requests

    def refused(self, line: str, number: int = 0) -> Refused:
        refused = self.answer(line, number)
        assert isinstance(refused, Refused), line
        return refused
