"""`understudy send` to a KUKA: G-code as records, confirmed by the robot's telemetry."""

from collections.abc import Callable

from understudy.errors import Refused
from understudy.gcode.blocks import Problem
from understudy.ports import Ticket
from understudy.ports.operation import Sender, SendOptions, StreamEnded
from understudy.robots.kuka.driver import NOT_CONNECTED, Config, TelemetryReader, build
from understudy.robots.kuka.program import Step, read_program


class RecordStream:
    """`ProgramStream` that `WatchesTelemetry`."""

    def __init__(self, steps: list[Step]) -> None:
        self.driver = build(Config())
        self.total = len(steps)
        self._steps = steps
        self._ended: StreamEnded = lambda outcome: None
        self.driver.on_finished(self._finished)

    def start(self, now: int, ended: StreamEnded) -> bool | Refused:
        self._ended = ended
        started = self.driver.run(self._steps, now)
        if not isinstance(started, Refused):
            return True
        return False if started == NOT_CONNECTED else started

    def progress(self) -> int | None:
        progress = self.driver.progress()
        return progress.completed if progress else None

    def give_up(self, now: int) -> None:
        self.driver.give_up(now)

    def closing(self, now: int) -> bool:
        return False

    def telemetry_reader(self) -> Callable[[bytes, int], bool]:
        reader = TelemetryReader()

        def read(data: bytes, now: int) -> bool:
            readings = reader.feed(data)
            for reading in readings:
                self.driver.observe(reading, now)
            return bool(readings)

        return read

    def confirmed(self) -> bool:
        return self.driver.status(0).seen

    def _finished(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        self._ended(outcome)


def stream(text: str, options: SendOptions) -> RecordStream | Refused | None:
    steps = read_program(text)
    if isinstance(steps, Problem):
        return steps.refused()
    return RecordStream(steps) if steps else None


SENDER = Sender(
    "kuka", "kuka_eki.command", unit="records", read=stream, telemetry="kuka_eki.telemetry"
)
