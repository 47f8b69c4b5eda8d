"""A real text robot, offering what the simulated `TextRobot` offers.

    GET_POS\\n GET_STATUS\\n      every poll period while no answer is awaited, and after commands
    MOVE_ABS …\\n                one move at a time: the next is said when nothing is awaited
    STOP\\n  RESET\\n             said at once, also behind a move that is awaited

Answers come in the order of the questions, so whatever breaks that order ends the call: an answer
that is late, unintelligible, too long or to no question. Then all tickets are refused, and the
robot's state is unknown until it was asked again. No move is ever said twice. Only an emergency
stop that the robot has not confirmed is said again, as the first word of the next call.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.ports import Finished, PoseReading, Ticket
from understudy.protocol.client import (
    ConnectionState,
    PendingRequest,
    ReconnectSchedule,
    RequestQueue,
)
from understudy.protocol.sessions import TextLine
from understudy.robots.text_robot.driver_codec import (
    LOST_ERROR,
    STATE_ERROR,
    STOPPED,
    Answer,
    Condition,
    plain,
    quoted,
    read_answer,
    request_of,
    unspeakable,
)
from understudy.robots.text_robot.driver_state import NOT_ASKED, Picture
from understudy.robots.text_robot.face import LONGEST_LINE, TIMEOUT_ERROR
from understudy.space.pose import Pose
from understudy.units import DEG, MM, NS_PER_MS, nanoseconds

Milliseconds = Annotated[int, Meta(ge=1, le=3_600_000)]
Delay = Annotated[float, Meta(ge=1e-3, le=3600.0)]

WAITING_LIMIT = 1024
AWAITED_LIMIT = 64

NOT_RESTORED = Refused("A real robot cannot be brought back to an earlier moment", LOST_ERROR)
TOO_MANY = Refused(f"{WAITING_LIMIT} moves are waiting already", STATE_ERROR)


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """How patient the driver is. `reconnect_s`: the rests between calls without an answer; the last
    one is repeated."""

    command_timeout_ms: Milliseconds = 3000
    poll_ms: Milliseconds = 100
    reconnect_s: Annotated[tuple[Delay, ...], Meta(min_length=1)] = (1.0, 2.0, 4.0, 8.0, 16.0)


class Move(NamedTuple):
    """A move that waits to be said. ``resets``: how many were asked for before it."""

    ticket: Ticket
    verb: str
    request: bytes
    resets: int


@dataclass(frozen=True, slots=True)
class Status:
    """What a reading tells, how old it is, and how the conversation goes."""

    pose: Pose
    state: str
    temperature_c: float
    error_code: int
    load_percent: int
    told_at: int | None
    connection: ConnectionState
    trouble: str
    pending: int


class Saved(Struct):
    """What a snapshot holds: tickets and wishes. The robot itself is not ours to save."""

    now: int
    next_ticket: int
    pending: list[Ticket]
    stop_owed: bool


class TextTcpDriver:
    """`PoseRobot`, `Part` and `Caller`."""

    def __init__(self, config: Config) -> None:
        self._patience = config.command_timeout_ms * NS_PER_MS
        self._period = config.poll_ms * NS_PER_MS
        self._listeners: list[Finished] = []
        self._stir_listeners: list[Callable[[], None]] = []
        self._now = 0
        self._next_ticket = 1
        self._orphans: list[Ticket] = []
        self._stop_owed = False
        self._stops = 0
        self._resets = 0
        self._picture = Picture()
        pauses = [nanoseconds(pause) for pause in config.reconnect_s]
        self._reconnect = ReconnectSchedule(timeout=self._patience, pauses=pauses)
        self._begun = 0
        self._poll_at = 0
        self._requests = RequestQueue(LONGEST_LINE, self._stir)
        self._waiting: deque[Move] = deque()
        self._ends: list[tuple[Ticket, Refused | None]] = []

    # ── requests ──

    def move_to(self, pose: Pose, now: int) -> Ticket | Refused:
        lengths = [value / MM for value in pose[:3]]
        return self._submit("MOVE_ABS", [*lengths, *(angle / DEG for angle in pose[3:])], now)

    def move_by(self, dx: float, dy: float, dz: float, now: int) -> Ticket | Refused:
        return self._submit("MOVE_REL", [dx / MM, dy / MM, dz / MM], now)

    def home(self, now: int) -> Ticket | Refused:
        return self._submit("HOME", [], now)

    def stops(self) -> int:
        return self._stops

    def stop(self, now: int) -> None:
        self._stops += 1
        broken = self._requests.tickets() + self._unsaid()
        self._waiting.clear()
        self._requests.drop_tickets()
        self._stop_owed = True
        self._command("STOP", now)
        self._tell_ends(now)
        self._refuse(broken, STOPPED, now)

    def reset(self, now: int) -> None:
        self._picture.own_error = 0
        self._stop_owed = False
        self._resets += 1
        self._command("RESET", now)

    def note_error(self, code: int) -> None:
        self._picture.own_error = code

    # ── what it tells ──

    def stopped(self) -> Refused | None:
        """A move behind a RESET that is awaited is accepted, and said if the robot was reset."""
        if self._picture.trouble or self._stop_owed:
            return self._picture.trouble or STOPPED
        locked = self._picture.locked and not self._requests.is_pending("RESET")
        return STOPPED if locked else None

    def reading(self, now: int) -> PoseReading:
        """What the robot told when it was last asked; NaN where it never was."""
        return self._picture.reading()

    def on_finished(self, listener: Finished) -> None:
        self._listeners.append(listener)

    def busy(self) -> bool:
        return bool(self._pending())

    def status(self, now: int) -> Status:
        reading, trouble = self.reading(now), self._picture.trouble
        return Status(
            pose=reading.pose,
            state=reading.state,
            temperature_c=reading.temperature_c,
            error_code=reading.error_code,
            load_percent=reading.load_percent,
            told_at=self._picture.told_at,
            connection=self._reconnect.state,
            trouble=trouble.reason if trouble else "",
            pending=len(self._pending()),
        )

    # ── time ──

    def next_wake(self) -> int | None:
        if self._orphans:
            return self._now
        if not self._talking():
            return self._reconnect.due
        awaited = self._requests.pending
        return awaited[0].due if awaited else self._poll_at

    def wake(self, now: int) -> None:
        self._now = now
        orphans, self._orphans = self._orphans, []
        self._refuse(orphans, NOT_RESTORED, now)
        patience = f"within {self._patience // NS_PER_MS} ms"
        if self._talking():
            awaited = self._requests.pending
            if awaited and now >= awaited[0].due:
                late = f"Communication timeout: no answer to {awaited[0].verb} {patience}"
                self._break_off(Refused(late, TIMEOUT_ERROR), now)
            self._go_on(now)
        elif now >= self._reconnect.due and self._reconnect.state == "connecting":
            self._break_off(Refused(f"Connection lost: no connection {patience}", LOST_ERROR), now)
        elif now >= self._reconnect.due:
            self._reconnect.connect(now)
            self._stir()

    # ── the line ──

    def wanted(self) -> int | None:
        return self._reconnect.wanted()

    def connected(self, now: int) -> None:
        self._now = now
        self._reconnect.connected()
        self._begun = self._poll_at = now
        self._picture.trouble = NOT_ASKED
        if self._stop_owed:
            self._command("STOP", now)
        self._go_on(now)

    def receive(self, data: bytes, now: int) -> None:
        self._now = now
        requests = self._requests
        for line in requests.receive(data):
            if self._requests is requests:  # the line before it may have ended the call
                self._hear(line, now)

    def take(self, room: int) -> bytes:
        return self._requests.take(room)

    def lost(self, now: int, reason: str) -> None:
        self._now = now
        self._break_off(Refused(f"Connection lost: {plain(reason)}", LOST_ERROR), now)

    def on_ready(self, listener: Callable[[], None]) -> None:
        self._stir_listeners.append(listener)

    # ── snapshots ──

    def save(self) -> Saved:
        return Saved(self._now, self._next_ticket, self._pending(), self._stop_owed)

    def load(self, state: Any) -> None:
        """Begin a new call; what was under way in the snapshot is refused as soon as time runs."""
        saved = msgspec.convert(state, Saved)
        self._now = saved.now
        self._next_ticket = max(self._next_ticket, saved.next_ticket)
        self._stop_owed |= saved.stop_owed
        self._orphans = list(saved.pending)
        self._ends.clear()
        self._reconnect.restart(saved.now)
        self._forget_call(NOT_RESTORED)

    # ── what is said ──

    def _submit(self, verb: str, values: Sequence[float], now: int) -> Ticket | Refused:
        refusal = self.stopped() or unspeakable(verb, values)
        if refusal is None and len(self._waiting) >= WAITING_LIMIT:
            refusal = TOO_MANY
        if refusal is not None:
            self._picture.own_error = refusal.code
            return refusal
        ticket = Ticket(self._next_ticket)
        self._next_ticket += 1
        self._waiting.append(Move(ticket, verb, request_of(verb, values), self._resets))
        self._go_on(now)
        return ticket

    def _command(self, verb: str, now: int) -> None:
        """STOP or RESET: said behind whatever is awaited, but not twice in a row."""
        awaited = self._requests.pending
        if not self._talking() or (awaited and awaited[-1].verb == verb):
            return
        self._say(verb, request_of(verb), now)
        if len(awaited) > AWAITED_LIMIT:
            many = f"Communication timeout: more than {AWAITED_LIMIT} answers are owed"
            self._break_off(Refused(many, TIMEOUT_ERROR), now)

    def _go_on(self, now: int) -> None:
        """Say what comes next, once all that was said is answered."""
        if not self._talking() or self._requests.pending:
            return
        if now >= self._poll_at:
            self._poll_at = now + self._period - (now - self._begun) % self._period
            self._say("GET_POS", request_of("GET_POS"), now)
            self._say("GET_STATUS", request_of("GET_STATUS"), now)
        elif self._waiting:
            move = self._waiting.popleft()
            self._say(move.verb, move.request, now, move.ticket)

    def _say(self, verb: str, request: bytes, now: int, ticket: Ticket | None = None) -> None:
        self._requests.send(request, PendingRequest(verb, now + self._patience, ticket))

    # ── what is heard ──

    def _hear(self, line: TextLine, now: int) -> None:
        awaited = self._requests.pending
        asked = awaited[0].verb if awaited else ""
        answer = read_answer(asked, line.data) if asked and not line.too_long else None
        if answer is not None:
            self._understand(awaited.popleft(), answer, now)
            return
        what = f"{quoted(line.data)} is no answer to {asked or 'anything asked'}"
        if line.too_long:
            what = f"an answer of more than {LONGEST_LINE} bytes"
        self._break_off(Refused(f"Communication timeout: {what}", TIMEOUT_ERROR), now)

    def _understand(self, question: PendingRequest, answer: Answer, now: int) -> None:
        self._reconnect.answered()
        if isinstance(answer, Pose):
            self._picture.place(answer)
        elif isinstance(answer, Condition):
            self._picture.describe(answer, now)
        elif not question.verb.startswith("GET"):
            self._poll_at = now
            self._conclude(question, answer if isinstance(answer, Refused) else None, now)
        if self._picture.locked or question.verb == "GET_STATUS":
            self._tell_ends(now)
        if self._picture.locked:
            self._drop_waiting(now)
        self._go_on(now)

    def _conclude(self, question: PendingRequest, refusal: Refused | None, now: int) -> None:
        """A command was answered."""
        if question.verb == "STOP":
            self._stop_owed &= self._requests.is_pending("STOP")
        if refusal == STOPPED or (question.verb == "STOP" and refusal is None):
            self._picture.lock()
        elif question.verb == "RESET" and refusal is None:
            self._picture.unlock()
        if question.ticket is not None:
            self._ends.append((question.ticket, refusal))

    def _drop_waiting(self, now: int) -> None:
        """An emergency stop ends what waits, whoever brought it about, and no reset revives it;
        what was submitted after a reset that is awaited may wait for that."""
        kept = [] if self.stopped() else [m for m in self._waiting if m.resets == self._resets]
        dropped = self._unsaid()[: len(self._waiting) - len(kept)]
        self._waiting = deque(kept)
        self._refuse(dropped, STOPPED, now)

    # ── how it ends ──

    def _break_off(self, trouble: Refused, now: int) -> None:
        said, unsaid = self._requests.tickets(), self._unsaid()
        self._reconnect.failed(now)
        self._forget_call(trouble)
        self._tell_ends(now)
        self._refuse(said, trouble, now)
        self._refuse(unsaid, replace(trouble, reason=f"Not sent. {trouble.reason}"), now)

    def _forget_call(self, trouble: Refused) -> None:
        self._picture.trouble = trouble
        self._waiting.clear()
        self._requests = RequestQueue(LONGEST_LINE, self._stir)
        self._stir()

    def _refuse(self, tickets: Sequence[Ticket], refusal: Refused, now: int) -> None:
        for ticket in tickets:
            self._picture.own_error = refusal.code
            self._tell(ticket, refusal, now)

    def _tell_ends(self, now: int) -> None:
        """Held back until the robot was asked again: who is told finds the reading fresh."""
        ends, self._ends = self._ends, []
        for ticket, outcome in ends:
            self._tell(ticket, outcome, now)

    def _tell(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        for listener in self._listeners:
            listener(ticket, outcome, now)

    def _pending(self) -> list[Ticket]:
        return [ticket for ticket, _ in self._ends] + self._requests.tickets() + self._unsaid()

    def _unsaid(self) -> list[Ticket]:
        return [move.ticket for move in self._waiting]

    def _talking(self) -> bool:
        return self._reconnect.state == "connected"

    def _stir(self) -> None:
        for listener in self._stir_listeners:
            listener()


def build(config: Config) -> TextTcpDriver:
    return TextTcpDriver(config)
