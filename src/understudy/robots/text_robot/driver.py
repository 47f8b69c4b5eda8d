"""The driver of a real text robot, with the same Protocols as the simulated one.

    GET_POS\\n GET_STATUS\\n      every poll period while no answer is pending, and after commands
    MOVE_ABS …\\n                one move at a time: the next one when no answer is pending
    STOP\\n  RESET\\n             sent at once, also while the answer to a move is pending

Answers come in the order of the requests, so everything that breaks this order ends the connection:
an answer that is late, malformed, too long, or belongs to no request. Then the driver refuses all
tickets, and the state of the robot is unknown until it has answered GET_STATUS again. The driver
never sends a move twice. Only an emergency stop that the robot has not confirmed is sent again, as
the first command of the next connection.
"""

import math
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.ports import Finished, Ticket
from understudy.ports.operation import Sender, SendOptions, StreamEnded
from understudy.protocol.client import (
    ConnectionState,
    PendingRequest,
    ReconnectSchedule,
    RequestQueue,
)
from understudy.protocol.sessions import TextLine
from understudy.robots.text_robot.face import DONE, EXPECTED, LONGEST_LINE, numbers
from understudy.robots.text_robot.interface import (
    CONNECTION_ERROR,
    OUTSIDE,
    PARAMETER_ERROR,
    STATE_ERROR,
    STOPPED,
    TIMEOUT_ERROR,
    PoseReading,
)
from understudy.robots.text_robot.program import Move, read_program
from understudy.space.pose import Pose, pose_mm_deg, pose_of
from understudy.units import MM, NS_PER_MS, nanoseconds

Milliseconds = Annotated[int, Meta(ge=1, le=3_600_000)]
Delay = Annotated[float, Meta(ge=1e-3, le=3600.0)]

QUEUE_LIMIT = 1024
PENDING_LIMIT = 64
LONGEST_MESSAGE = 200
LONGEST_QUOTE = 40

CONFIRMATIONS = DONE | {"STOP": "OK Emergency stop executed", "RESET": "OK Error reset"}
CODES = {
    "Communication timeout": TIMEOUT_ERROR,
    OUTSIDE.reason: OUTSIDE.code,
    "Invalid parameters": PARAMETER_ERROR,
    STOPPED.reason: STOPPED.code,
}
CONDITION = re.compile(
    rb"OK (Idle|Moving|Homing|EmergencyStopped),([+-]?\d{1,4}(?:\.\d{1,6})?),(\d{1,4}),(\d{1,3})"
)

NOT_CONNECTED = Refused("Connection lost: the robot was not reached yet", CONNECTION_ERROR)
STATE_UNKNOWN = Refused("Robot state unknown: it has not answered GET_STATUS yet", CONNECTION_ERROR)
NOT_RESTORED = Refused("A real robot cannot be restored from a snapshot", CONNECTION_ERROR)
QUEUE_FULL = Refused(f"{QUEUE_LIMIT} moves are waiting already", STATE_ERROR)


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Timeouts and periods of the driver. `reconnect_s`: the pauses between connection attempts;
    the last one is repeated."""

    command_timeout_ms: Milliseconds = 3000
    poll_ms: Milliseconds = 100
    reconnect_s: Annotated[tuple[Delay, ...], Meta(min_length=1)] = (1.0, 2.0, 4.0, 8.0, 16.0)


# ── requests and answers ────────────────────────────────────────────────────────────────────────


class Condition(NamedTuple):
    """The answer to GET_STATUS."""

    state: str
    temperature_c: float
    error_code: int
    load_percent: int


Answer = Pose | Condition | Refused | str
"""The answer to GET_POS, the answer to GET_STATUS, an ERROR, or the confirmation of a command."""


def request_of(verb: str, values: Sequence[float] = ()) -> bytes:
    """The line of a command; lengths in millimetres, angles in degrees."""
    words = [verb, ",".join(map(decimal, values))] if values else [verb]
    return " ".join(words).encode("ascii") + b"\n"


def decimal(value: float) -> str:
    """Two decimals, as the robot's own client writes them; up to six if they are not zero."""
    text = f"{value:.6f}"
    text = text[:-4] + text[-4:].rstrip("0")
    return "0.00" if text == "-0.00" else text


def invalid(verb: str, values: Sequence[float]) -> Refused | None:
    """The refusal of values that cannot be sent, in the words of the robot."""
    if all(map(math.isfinite, values)):
        return None
    return Refused(f"Invalid parameters (expected: {EXPECTED[verb]})", code=PARAMETER_ERROR)


def read_answer(verb: str, line: bytes) -> Answer | None:
    """The robot's answer to ``verb``, or None if the line is no answer to it."""
    if line.startswith(b"ERROR "):
        message = printable(line[len("ERROR ") :].decode("latin-1"))
        return Refused(message, code_of(message))
    if verb == "GET_POS":
        return _pose(line)
    if verb == "GET_STATUS":
        return _condition(line)
    confirmation = CONFIRMATIONS[verb]
    return confirmation if line == confirmation.encode("ascii") else None


def code_of(message: str) -> int:
    """The error code of a refusal; 0 for a message that is not in the contract."""
    return next((code for words, code in CODES.items() if message.startswith(words)), 0)


def printable(text: str) -> str:
    """Printable ASCII of bounded length, which every dialect can send."""
    return "".join(c if " " <= c <= "~" else "?" for c in text[:LONGEST_MESSAGE])


def quoted(line: bytes) -> str:
    return f"'{printable(line[:LONGEST_QUOTE].decode('latin-1'))}'"


def _pose(line: bytes) -> Pose | None:
    values = numbers(line[len("OK ") :], count=6) if line.startswith(b"OK ") else None
    return None if values is None else pose_of(values)


def _condition(line: bytes) -> Condition | None:
    match = CONDITION.fullmatch(line)
    if match is None:
        return None
    state, temperature, code, load = (group.decode("ascii") for group in match.groups())
    return Condition(state, float(temperature), int(code), int(load))


# ── state ───────────────────────────────────────────────────────────────────────────────────────


class ControllerState:
    """The last reported state of the robot; while there is ``trouble``, the state is unknown.

    An error of the driver stays until reset, as the errors of the robot do.
    """

    def __init__(self) -> None:
        self.trouble: Refused | None = NOT_CONNECTED
        self.reported_at: int | None = None
        self.own_error = 0
        self.pose = Pose(*(math.nan,) * 6)
        self._condition = Condition("Unknown", math.nan, 0, 0)

    @property
    def locked(self) -> bool:
        """The robot reported its emergency stop."""
        return self._condition.state == "EmergencyStopped"

    def report(self, condition: Condition, now: int) -> None:
        self._condition = condition
        self.reported_at = now
        self.trouble = None

    def lock(self) -> None:
        self._condition = self._condition._replace(state="EmergencyStopped")

    def unlock(self) -> None:
        state = "Idle" if self.locked else self._condition.state
        self._condition = self._condition._replace(state=state, error_code=0)

    def reading(self) -> PoseReading:
        """NaN for values that the robot has not reported yet."""
        condition, trouble = self._condition, self.trouble
        return PoseReading(
            pose=self.pose,
            state="Unknown" if trouble else condition.state,
            temperature_c=condition.temperature_c,
            error_code=trouble.code if trouble else self.own_error or condition.error_code,
            load_percent=condition.load_percent,
        )


class QueuedMove(NamedTuple):
    """A move that waits to be sent. ``resets``: number of resets before it was submitted."""

    ticket: Ticket
    verb: str
    request: bytes
    resets: int


@dataclass(frozen=True, slots=True)
class Status:
    """A reading, the time it was reported, and the state of the connection."""

    pose: Pose
    state: str
    temperature_c: float
    error_code: int
    load_percent: int
    reported_at: int | None
    connection: ConnectionState
    trouble: str
    pending: int


class DriverState(Struct):
    """Snapshot: tickets, and whether a stop is unconfirmed. The real robot cannot be saved."""

    now: int
    next_ticket: int
    pending: list[Ticket]
    stop_owed: bool


# ── driver ──────────────────────────────────────────────────────────────────────────────────────


class TextTcpDriver:
    """`PoseRobot`, `Component` and `Caller`."""

    def __init__(self, config: Config) -> None:
        self._timeout = config.command_timeout_ms * NS_PER_MS
        self._period = config.poll_ms * NS_PER_MS
        self._listeners: list[Finished] = []
        self._ready_listeners: list[Callable[[], None]] = []
        self._now = 0
        self._next_ticket = 1
        self._restored: list[Ticket] = []
        """Tickets of a snapshot, to be refused when time runs."""
        self._stop_owed = False
        self._stops = 0
        self._resets = 0
        self._state = ControllerState()
        pauses = [nanoseconds(pause) for pause in config.reconnect_s]
        self._reconnect = ReconnectSchedule(timeout=self._timeout, pauses=pauses)
        self._connected_at = 0
        self._poll_at = 0
        self._requests = RequestQueue(LONGEST_LINE, self._ready)
        self._queue: deque[QueuedMove] = deque()
        self._ends: list[tuple[Ticket, Refused | None]] = []
        """Ended tickets that were not reported to the listeners yet."""

    # ── requests ──

    def move_to(self, pose: Pose, now: int) -> Ticket | Refused:
        return self._submit("MOVE_ABS", pose_mm_deg(pose), now)

    def move_by(self, dx: float, dy: float, dz: float, now: int) -> Ticket | Refused:
        return self._submit("MOVE_REL", [dx / MM, dy / MM, dz / MM], now)

    def home(self, now: int) -> Ticket | Refused:
        return self._submit("HOME", [], now)

    def stops(self) -> int:
        return self._stops

    def stop(self, now: int) -> None:
        self._stops += 1
        tickets = self._requests.tickets() + self._queued()
        self._queue.clear()
        self._requests.drop_tickets()
        self._stop_owed = True
        self._command("STOP", now)
        self._report_ends(now)
        self._refuse(tickets, STOPPED, now)

    def halt(self, now: int) -> None:
        self.stop(now)

    def reset(self, now: int) -> None:
        self._state.own_error = 0
        self._stop_owed = False
        self._resets += 1
        self._command("RESET", now)

    def note_error(self, code: int) -> None:
        self._state.own_error = code

    # ── readings ──

    def fault(self, now: int) -> Refused | None:
        return self.stopped()

    def stopped(self) -> Refused | None:
        """Why no move is accepted. While a RESET is pending, moves wait for its confirmation."""
        if self._state.trouble or self._stop_owed:
            return self._state.trouble or STOPPED
        locked = self._state.locked and not self._requests.is_pending("RESET")
        return STOPPED if locked else None

    def reading(self, now: int) -> PoseReading:
        """The last report of the robot; NaN for values that it has not reported yet."""
        return self._state.reading()

    def on_finished(self, listener: Finished) -> None:
        self._listeners.append(listener)

    def busy(self) -> bool:
        return bool(self._pending())

    def status(self, now: int) -> Status:
        reading, trouble = self.reading(now), self._state.trouble
        return Status(
            pose=reading.pose,
            state=reading.state,
            temperature_c=reading.temperature_c,
            error_code=reading.error_code,
            load_percent=reading.load_percent,
            reported_at=self._state.reported_at,
            connection=self._reconnect.state,
            trouble=trouble.reason if trouble else "",
            pending=len(self._pending()),
        )

    # ── time ──

    def next_wake(self) -> int | None:
        if self._restored:
            return self._now
        if not self._connected():
            return self._reconnect.due
        pending = self._requests.pending
        return pending[0].due if pending else self._poll_at

    def wake(self, now: int) -> None:
        self._now = now
        restored, self._restored = self._restored, []
        self._refuse(restored, NOT_RESTORED, now)
        within = f"within {self._timeout // NS_PER_MS} ms"
        if self._connected():
            pending = self._requests.pending
            if pending and now >= pending[0].due:
                late = f"Communication timeout: no answer to {pending[0].verb} {within}"
                self._disconnect(Refused(late, TIMEOUT_ERROR), now)
            self._send_next(now)
        elif now >= self._reconnect.due and self._reconnect.state == "connecting":
            reason = f"Connection lost: no connection {within}"
            self._disconnect(Refused(reason, CONNECTION_ERROR), now)
        elif now >= self._reconnect.due:
            self._reconnect.connect(now)
            self._ready()

    # ── connection ──

    def wanted(self) -> int | None:
        return self._reconnect.wanted()

    def connected(self, now: int) -> None:
        self._now = now
        self._reconnect.connected()
        self._connected_at = self._poll_at = now
        self._state.trouble = STATE_UNKNOWN
        if self._stop_owed:
            self._command("STOP", now)
        self._send_next(now)

    def receive(self, data: bytes, now: int) -> None:
        self._now = now
        requests = self._requests
        for line in requests.receive(data):
            if self._requests is requests:  # the line before may have ended the connection
                self._receive_line(line, now)

    def take(self, room: int) -> bytes:
        return self._requests.take(room)

    def lost(self, now: int, reason: str) -> None:
        self._now = now
        self._disconnect(Refused(f"Connection lost: {printable(reason)}", CONNECTION_ERROR), now)

    def on_ready(self, listener: Callable[[], None]) -> None:
        self._ready_listeners.append(listener)

    # ── snapshots ──

    def save(self) -> DriverState:
        return DriverState(self._now, self._next_ticket, self._pending(), self._stop_owed)

    def load(self, state: Any) -> None:
        """Connects again; tickets of the snapshot are refused as soon as time runs."""
        saved = msgspec.convert(state, DriverState)
        self._now = saved.now
        self._next_ticket = max(self._next_ticket, saved.next_ticket)
        self._stop_owed |= saved.stop_owed
        self._restored = list(saved.pending)
        self._ends.clear()
        self._reconnect.restart(saved.now)
        self._drop_connection(NOT_RESTORED)

    # ── sending ──

    def _submit(self, verb: str, values: Sequence[float], now: int) -> Ticket | Refused:
        refusal = self.stopped() or invalid(verb, values)
        if refusal is None and len(self._queue) >= QUEUE_LIMIT:
            refusal = QUEUE_FULL
        if refusal is not None:
            self._state.own_error = refusal.code
            return refusal
        ticket = Ticket(self._next_ticket)
        self._next_ticket += 1
        self._queue.append(QueuedMove(ticket, verb, request_of(verb, values), self._resets))
        self._send_next(now)
        return ticket

    def _command(self, verb: str, now: int) -> None:
        """Sends STOP or RESET behind all pending requests, but not twice in a row."""
        pending = self._requests.pending
        if not self._connected() or (pending and pending[-1].verb == verb):
            return
        self._send(verb, request_of(verb), now)
        if len(pending) > PENDING_LIMIT:
            reason = f"Communication timeout: more than {PENDING_LIMIT} answers are pending"
            self._disconnect(Refused(reason, TIMEOUT_ERROR), now)

    def _send_next(self, now: int) -> None:
        """Sends the next poll or move if no answer is pending."""
        if not self._connected() or self._requests.pending:
            return
        if now >= self._poll_at:
            self._poll_at = now + self._period - (now - self._connected_at) % self._period
            self._send("GET_POS", request_of("GET_POS"), now)
            self._send("GET_STATUS", request_of("GET_STATUS"), now)
        elif self._queue:
            move = self._queue.popleft()
            self._send(move.verb, move.request, now, move.ticket)

    def _send(self, verb: str, line: bytes, now: int, ticket: Ticket | None = None) -> None:
        self._requests.send(line, PendingRequest(verb, now + self._timeout, ticket))

    # ── answers ──

    def _receive_line(self, line: TextLine, now: int) -> None:
        pending = self._requests.pending
        verb = pending[0].verb if pending else ""
        answer = read_answer(verb, line.data) if verb and not line.too_long else None
        if answer is not None:
            self._accept(pending.popleft(), answer, now)
            return
        what = f"{quoted(line.data)} is no answer to {verb or 'any request'}"
        if line.too_long:
            what = f"an answer of more than {LONGEST_LINE} bytes"
        self._disconnect(Refused(f"Communication timeout: {what}", TIMEOUT_ERROR), now)

    def _accept(self, request: PendingRequest, answer: Answer, now: int) -> None:
        self._reconnect.answered()
        if isinstance(answer, Pose):
            self._state.pose = answer
        elif isinstance(answer, Condition):
            self._state.report(answer, now)
        elif not request.verb.startswith("GET"):
            self._poll_at = now
            self._conclude(request, answer if isinstance(answer, Refused) else None)
        if self._state.locked or request.verb == "GET_STATUS":
            self._report_ends(now)
        if self._state.locked:
            self._drop_queued(now)
        self._send_next(now)

    def _conclude(self, request: PendingRequest, refusal: Refused | None) -> None:
        """The robot answered a command."""
        if request.verb == "STOP":
            self._stop_owed &= self._requests.is_pending("STOP")
        if refusal == STOPPED or (request.verb == "STOP" and refusal is None):
            self._state.lock()
        elif request.verb == "RESET" and refusal is None:
            self._state.unlock()
        if request.ticket is not None:
            self._ends.append((request.ticket, refusal))

    def _drop_queued(self, now: int) -> None:
        """An emergency stop of any origin refuses the queued moves, and a reset does not restore
        them. Moves that were submitted after a pending reset stay queued."""
        kept = [] if self.stopped() else [m for m in self._queue if m.resets == self._resets]
        dropped = self._queued()[: len(self._queue) - len(kept)]
        self._queue = deque(kept)
        self._refuse(dropped, STOPPED, now)

    # ── end of a connection and of tickets ──

    def _disconnect(self, trouble: Refused, now: int) -> None:
        sent, queued = self._requests.tickets(), self._queued()
        self._reconnect.failed(now)
        self._drop_connection(trouble)
        self._report_ends(now)
        self._refuse(sent, trouble, now)
        self._refuse(queued, replace(trouble, reason=f"Not sent. {trouble.reason}"), now)

    def _drop_connection(self, trouble: Refused) -> None:
        self._state.trouble = trouble
        self._queue.clear()
        self._requests = RequestQueue(LONGEST_LINE, self._ready)
        self._ready()

    def _refuse(self, tickets: Sequence[Ticket], refusal: Refused, now: int) -> None:
        for ticket in tickets:
            self._state.own_error = refusal.code
            self._finish(ticket, refusal, now)

    def _report_ends(self, now: int) -> None:
        """Notifies the listeners once the robot has reported its state, so that they read fresh
        values."""
        ends, self._ends = self._ends, []
        for ticket, outcome in ends:
            self._finish(ticket, outcome, now)

    def _finish(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        for listener in self._listeners:
            listener(ticket, outcome, now)

    def _pending(self) -> list[Ticket]:
        return [ticket for ticket, _ in self._ends] + self._requests.tickets() + self._queued()

    def _queued(self) -> list[Ticket]:
        return [move.ticket for move in self._queue]

    def _connected(self) -> bool:
        return self._reconnect.state == "connected"

    def _ready(self) -> None:
        for listener in self._ready_listeners:
            listener()


def build(config: Config) -> TextTcpDriver:
    return TextTcpDriver(config)


# ── `understudy send`: one move after the other ───────────────────────────────────────────────────


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
