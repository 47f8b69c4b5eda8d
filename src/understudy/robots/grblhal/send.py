"""`understudy send` to a grblHAL controller: the lines of the program as they are."""

from understudy.errors import Refused
from understudy.ports import Ticket
from understudy.ports.operation import Sender, SendOptions, StreamEnded
from understudy.robots.grblhal.driver import Config, GrblHalDriver, build

POLL_MS = 50
"""Period of the status polls."""


class LineStream:
    """`ProgramStream`. It does not unlock, home or reset: a controller in alarm stays in alarm."""

    def __init__(self, driver: GrblHalDriver, text: str) -> None:
        self.driver = driver
        self._lines = text.splitlines()
        self.total = len(self._lines)
        self._connecting = self._disconnecting = False
        self._ended: StreamEnded = lambda outcome: None
        driver.on_finished(self._finished)

    def start(self, now: int, ended: StreamEnded) -> bool | Refused:
        if not self._connecting:
            self._connecting = True
            self.driver.connect(now)
        if not self.driver.is_connected():
            message = self.driver.status(now).error_message
            return Refused(message) if message else False
        if refused := self.driver.enable(now):
            return refused
        self._ended = ended
        started = self.driver.run(self._lines, now)
        return started if isinstance(started, Refused) else True

    def progress(self) -> int | None:
        progress = self.driver.progress()
        return progress.accepted if progress else None

    def give_up(self, now: int) -> None:
        self.driver.stop(now)

    def closing(self, now: int) -> bool:
        """Whether the connection still closes: the driver stops all motion before it
        disconnects."""
        if not self._disconnecting:
            self._disconnecting = True
            self.driver.disconnect(now)
        return self.driver.wanted() is not None

    def _finished(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        self._ended(outcome)


def stream(text: str, options: SendOptions) -> LineStream:
    return LineStream(build(Config(dialect="grblhal", poll_ms=POLL_MS)), text)


SENDER = Sender("grblhal", "grblhal", unit="lines", read=stream, dialects=("grblhal",))
