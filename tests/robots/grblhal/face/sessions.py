"""Recorded sessions of the real firmware, played in process on virtual time and compared.

The rules are those of `tests/golden/grblhal_wire/README.md`: `*` is any value of one field,
coordinates agree within 0.0015 and have the same number of decimals, a feed within 1.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from understudy.wire.exchange import Client, InProcessCell

BANNER = "GrblHAL "
COORDINATES_WITHIN, FEED_WITHIN = 0.0015, 1.0
ANSWER = re.compile(r"ok$|error:\d+$")
NUMBER = re.compile(r"(?<=FS:)\d+|-?\d+\.\d+")
FULL_STATUS = b"\x87"
PATIENCE_S = 60.0
NO_ANSWER = "(no answer)"

Step = dict[str, Any]


class Wire(ABC):
    """A client of a controller that reads lines; `now` is the controller's time in seconds."""

    def __init__(self) -> None:
        self._rest = b""
        self._lines: list[str] = []

    @property
    @abstractmethod
    def now(self) -> float: ...

    @abstractmethod
    def write(self, data: bytes) -> None: ...

    @abstractmethod
    def run(self, seconds: float) -> None:
        """Lets time pass, and receives what comes."""

    @abstractmethod
    def _wait(self, end: float) -> bool:
        """Waits for bytes, until this time at most; false if none can come any more."""

    def toggle(self, key: bytes) -> None:
        """Toggles an input of the controller, named by a key."""
        raise NotImplementedError

    def pass_time(self, seconds: float) -> None:
        """Lets simulated time pass, and receives what comes."""
        self.run(seconds)

    def remember(self) -> bool:
        """Keeps the present state for `begin_again`; false if this controller cannot."""
        return False

    def begin_again(self) -> None:
        """Goes back to the state of `remember`."""
        raise NotImplementedError

    def listen(self, seconds: float) -> list[str]:
        """All lines that come within this time."""
        self.run(seconds)
        lines, self._lines = self._lines, []
        return lines

    def until(self, wanted: Callable[[str], object], count: int, patience: float) -> list[str]:
        """Lines until ``count`` wanted ones have come; time runs only as far as is needed."""
        end = self.now + patience
        got: list[str] = []
        while count:
            line = self._next(end)
            if line is None:
                return [*got, NO_ANSWER]
            got.append(line)
            count -= bool(wanted(line))
        return got

    def answers(self, count: int, patience: float = 10.0) -> list[str]:
        return self.until(ANSWER.match, count, patience)

    def report(self) -> list[str]:
        return self.until(lambda line: line.startswith("<"), 1, 3.0)

    def banner(self) -> list[str]:
        return self.until(lambda line: line.startswith(BANNER), 1, 4.0) + self.listen(0.3)

    def idle(self) -> list[str]:
        """Full reports every 50 ms until two in a row say Idle; the last one is kept."""
        end, got, calm = self.now + PATIENCE_S, [], 0
        while self.now < end:
            self.write(FULL_STATUS)
            answer = self.report()
            got += [line for line in answer if not line.startswith("<")]
            calm = calm + 1 if answer[-1].startswith("<Idle") else 0
            if calm == 2:
                return [*got, answer[-1]]
            self.run(0.05)
        return [*got, "(never idle)"]

    def command(self, text: str) -> list[str]:
        self.write(text.encode("latin-1") + b"\n")
        return self.answers(1)

    def _received(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        self._lines += [line.decode("latin-1").rstrip("\r") for line in whole]

    def _next(self, end: float) -> str | None:
        while not self._lines:
            if not self._wait(end):
                return None
        return self._lines.pop(0)


class CellWire(Wire):
    """A client of a cell in this process, on virtual time."""

    def __init__(self, virtual_cell: InProcessCell, client: Client) -> None:
        super().__init__()
        self._cell = virtual_cell
        self._client = client

    @property
    def now(self) -> float:
        return self._cell.now

    def write(self, data: bytes) -> None:
        self._client.say(data)
        self._received(self._client.received())

    def run(self, seconds: float) -> None:
        self._cell.advance(seconds)
        self._received(self._client.received())

    def _wait(self, end: float) -> bool:
        at = self._cell.timed_cell.next_wake()
        if at is None or at / 1e9 > end:
            return False
        self._cell.advance_to(at)
        self._received(self._client.received())
        return True


def prepare(wire: Wire, settings: Iterable[str]) -> None:
    """The state that every recording starts from."""
    wire.listen(0.1)
    wire.write(b"\x18")
    wire.banner()
    wire.command("$X")
    wire.write(b"$RST=*\n")
    wire.banner()
    for setting in settings:
        answer = wire.command(setting)
        assert answer[-1] == "ok", f"{setting}: {answer[-1]}"
    for line in ("G21 G90 G94", "G49", "M61 Q0", "G53 G0 X0 Y0 Z0 A0 B0 C0"):
        wire.command(line)
    wire.idle()
    wire.write(b"\x18")
    wire.banner()


def outgoing(step: Step) -> bytes:
    if "hex" in step:
        return bytes.fromhex(step["hex"])
    return str(step.get("send", "")).encode("latin-1")


def play_step(wire: Wire, step: Step) -> list[str]:
    wire.write(outgoing(step))
    wait = step["wait"]
    if wait == "ok":
        return wire.answers(step.get("answers", 1))
    waits: dict[str, Callable[[], list[str]]] = {
        "report": wire.report,
        "banner": wire.banner,
        "idle": wire.idle,
    }
    return waits[wait]() if wait in waits else wire.listen(float(wait))


def difference(step: Step, lines: list[str]) -> str | None:
    """The first difference between the answers and the recording."""
    if "count" in step and len(lines) != step["count"]:
        return f"{len(lines)} lines instead of {step['count']}"
    got, expected = shaped(step, lines), step["got"]
    for index, (want, have) in enumerate(zip(expected, got, strict=False), 1):
        if not same_line(want, have):
            return f"line {index}: expected {want!r}, got {have!r}"
    if len(expected) > len(got):
        return f"missing {expected[len(got)]!r}"
    return f"not expected {got[len(expected)]!r}" if len(expected) < len(got) else None


def shaped(step: Step, lines: list[str]) -> list[str]:
    """The lines that the step records: some of them, or the first and the last one."""
    if "pick" in step:
        lines = [line for line in lines if re.search(step["pick"], line)]
    if "head" in step and len(lines) > step["head"]:
        lines = [*lines[: step["head"]], lines[-1]]
    return lines


def same_line(expected: str, actual: str) -> bool:
    if expected == actual:
        return True
    pattern = re.escape(expected).replace(r"\*", r"[^|>\]]*")
    pattern = re.sub(r"(\\-)?\d+\\\.\d+", r"(-?\\d+\\.\\d+)", pattern)
    pattern = re.sub(r"(?<=FS:)\d+", r"(\\d+)", pattern)
    found = re.fullmatch(pattern, actual)
    return found is not None and all(map(near, NUMBER.findall(expected), found.groups()))


def near(expected: str, actual: str) -> bool:
    apart = abs(float(expected) - float(actual))
    if "." not in expected:
        return apart <= FEED_WITHIN
    decimals = len(expected.partition(".")[2]) == len(actual.partition(".")[2])
    return apart <= COORDINATES_WITHIN and decimals
