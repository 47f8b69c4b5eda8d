"""`understudy send` to a text robot: one move after the other."""

from dataclasses import replace

from understudy.errors import Refused
from understudy.ports import Ticket
from understudy.ports.operation import Sender, SendOptions, StreamEnded
from understudy.robots.text_robot.driver import NOT_CONNECTED, STATE_UNKNOWN, Config, build
from understudy.robots.text_robot.program import Move, read_program


class MoveStream:
    """`ProgramStream`; the first move that is refused ends it."""

    def __init__(self, moves: list[Move]) -> None:
        self.driver = build(Config())
        self.total = len(moves)
        self._moves = moves
        self._done = 0
        self._ended: StreamEnded = lambda outcome: None
        self.driver.on_finished(self._finished)

    def start(self, now: int, ended: StreamEnded) -> bool | Refused:
        trouble = self.driver.stopped()
        if trouble is not None:
            return False if trouble in (NOT_CONNECTED, STATE_UNKNOWN) else trouble
        self._ended = ended
        self._send_next(now)
        return True

    def progress(self) -> int | None:
        return self._done

    def give_up(self, now: int) -> None:
        self.driver.stop(now)

    def closing(self, now: int) -> bool:
        return False

    def _send_next(self, now: int) -> None:
        if self._done == len(self._moves):
            self._ended(None)
            return
        ticket = self._moves[self._done].submit(self.driver, now)
        if isinstance(ticket, Refused):
            self._fail(ticket)

    def _finished(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        if outcome is not None:
            self._fail(outcome)
            return
        self._done += 1
        self._send_next(now)

    def _fail(self, why: Refused) -> None:
        line = self._moves[self._done].line
        self._ended(replace(why, reason=f"line {line}: {why.reason}"))


def stream(text: str, options: SendOptions) -> MoveStream | Refused | None:
    moves = read_program(text)
    if isinstance(moves, Refused):
        return moves
    return MoveStream(moves) if moves else None


SENDER = Sender("text", "text_tcp", unit="moves", read=stream)
