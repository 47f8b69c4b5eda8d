"""The connection to a real grblHAL: lines in progress, end of the connection, and recovery.

After a stop or a reset the driver sends nothing until the controller has confirmed it, and after a
reset that the driver requested it ends the alarm with `$X`. `RECOVERY` is the table of these steps;
`docs/robots/grblhal.md` shows it as a diagram.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Literal

from understudy.errors import Refused
from understudy.ports import Finished, Joints, Ticket
from understudy.protocol.client import ReconnectSchedule
from understudy.robots.grblhal.driver.exchange import (
    Answered,
    LineExchange,
    LineQueue,
    QueuedLine,
    Received,
    SentLine,
    UnsentLine,
)
from understudy.robots.grblhal.driver.jog import JogControl
from understudy.robots.grblhal.driver.messages import Alarm, Banner, Report, alarm, refusal
from understudy.robots.grblhal.driver.state import ControllerState
from understudy.robots.grblhal.numbers import Realtime
from understudy.units import NS_PER_MS

HOME_ALL = "$H"
DISCONNECTED = Refused("disconnected")
HALTED = Refused("stopped")
RESTARTED = Refused("the controller has restarted")
UNEXPECTED = Refused(
    "the controller sent an answer without a request: lines and answers no longer match"
)
NOT_SENT = "Not sent. "

LineListener = Callable[[int, Refused | None, int], None]
"""Called with a line's number, and None if the controller accepted the line, or the refusal."""

Recovery = Literal["none", "halting", "clearing", "unlocking"]
"""`halting`: a stop or reset is not confirmed yet. `clearing`: the same, and an alarm is unlocked
afterwards. `unlocking`: the driver waits for a report to see whether there is an alarm."""
RecoveryEvent = Literal["stop", "reset", "clear", "confirmed", "reported", "lost"]
"""`clear` is a reset that also ends an alarm. `lost`: the connection or its exchange has ended."""

RECOVERY: Mapping[tuple[Recovery, RecoveryEvent], Recovery] = {
    ("none", "stop"): "halting",
    ("unlocking", "stop"): "clearing",
    ("none", "reset"): "halting",
    ("clearing", "reset"): "halting",
    ("unlocking", "reset"): "halting",
    ("none", "clear"): "clearing",
    ("halting", "clear"): "clearing",
    ("unlocking", "clear"): "clearing",
    ("halting", "confirmed"): "none",
    ("clearing", "confirmed"): "unlocking",
    ("unlocking", "reported"): "none",
    ("halting", "lost"): "none",
    ("clearing", "lost"): "none",
    ("unlocking", "lost"): "none",
}
"""An event without a row has no effect."""


class Outcomes:
    """Reports the outcomes of lines and programs to the listeners."""

    def __init__(self) -> None:
        self.line_listeners: list[LineListener] = []
        self.program_listeners: list[Finished] = []

    def line(self, number: int, outcome: Refused | None, now: int) -> None:
        """Report the outcome of a line; number 0 is a line of the driver."""
        for listener in self.line_listeners if number else ():
            listener(number, outcome, now)

    def program(self, ticket: Ticket, outcome: Refused | None, now: int) -> None:
        for listener in self.program_listeners:
            listener(ticket, outcome, now)

    def unanswered(self, lines: Iterable[SentLine], why: Refused, now: int) -> None:
        """Report lines that were sent and will not be answered."""
        for number in dict.fromkeys(line.number for line in lines if line.kind == "line"):
            self.line(number, why, now)

    def unsent(self, queue: LineQueue, why: Refused, now: int, number: int = 0) -> None:
        """Drop and report the lines that wait, and their program; line ``number`` has failed."""
        program, queue.program = queue.program, None
        outcome = replace(why, reason=NOT_SENT + why.reason)
        for dropped in queue.drop():
            if dropped != number:
                self.line(dropped, outcome, now)
        if program is not None:
            accepted = f"{program.accepted} of {program.read} lines accepted; "
            place = f"line {number}: " if number else accepted
            if number and why.reason.startswith(f"line {number}"):
                place = ""  # an error in the text already says where
            self.program(program.ticket, replace(why, reason=place + why.reason), now)


class ControllerConnection:
    """Connects, sends what is queued, follows the answers, and ends what is in progress.

    The driver checks requests before it calls this. ``wanted``: the driver should be connected.
    ``trouble``: why the connection failed. ``error``: a line failed, and every line is refused
    until it is cleared. ``stop_owed``: an emergency stop must be sent again after reconnecting.
    """

    def __init__(
        self,
        state: ControllerState,
        queue: LineQueue,
        jogging: JogControl,
        reconnect: ReconnectSchedule,
        *,
        timeout: int,
        period: int,
    ) -> None:
        self.state = state
        self.queue = queue
        self.reconnect = reconnect
        self.jogging = jogging
        self._timeout, self._period = timeout, period
        self.wanted = self.enabled = False
        self.exchange: LineExchange | None = None
        self.trouble: Refused | None = None
        self.stopped: Refused | None = None
        self.alarm: Refused | None = None
        self.error: Refused | None = None
        self.stop_owed = False
        self.optional_stop: bool | None = None
        self.accepted = self.stops = 0
        self._pins_only = False
        """Since everything was done, only lines that set outputs or read inputs were sent."""
        self._recovery: Recovery = "none"
        self._confirmed_by = 0
        self._disconnect_at: int | None = None
        self._poll_at = 0
        self.outcomes = Outcomes()
        self.report_listeners: list[Callable[[int], None]] = []
        self.ready_listeners: list[Callable[[], None]] = []

    # ── status ──

    def connected(self) -> bool:
        return self.exchange is not None and self.state.reported_at is not None

    def settled(self) -> bool:
        """Everything that was sent is done, according to the last report."""
        exchange = self.exchange
        if exchange is None or not (exchange.ready and exchange.fresh) or exchange.in_flight:
            return False
        return self.state.drained and not self._halting

    def under_way(self) -> bool:
        """Something is in progress or about to start."""
        if self.exchange is None:
            return False
        return bool(self.queue) or not self.jogging.over or not self.settled()

    def working(self) -> bool:
        """Whether lines are under way as in `under_way`, but lines that set outputs or read inputs
        do not count."""
        if not self.queue.only_pins() or not self.jogging.over:
            return self.exchange is not None
        return self.under_way() and not self._pins_only

    def occupied(self) -> bool:
        """Lines, a jog, or a motion that this driver has not started are in progress."""
        sent = self.exchange.in_flight if self.exchange is not None else ()
        free = all(line.is_pin or line.kind == "query" for line in sent)
        idle = self.queue.only_pins() and self.jogging.over and free
        return not idle or self.state.moves

    def recovering(self) -> bool:
        """A stop, a reset or an unlock is not complete yet."""
        unlocks = self.exchange is not None and self.exchange.awaits("unlock")
        return unlocks or self._recovery != "none"

    @property
    def _halting(self) -> bool:
        return self._recovery in ("halting", "clearing")

    def _recover(self, event: RecoveryEvent) -> None:
        self._recovery = RECOVERY.get((self._recovery, event), self._recovery)

    # ── requests of the driver ──

    def connect(self, now: int) -> None:
        self._disconnect_at = None
        if not self.wanted:
            self.wanted = True
            self.reconnect.restart(now)
            self.reconnect.connect(now)
            self.notify_ready()

    def disconnect(self, now: int) -> None:
        """Close the connection once the last commands are sent and done."""
        if self.exchange is None:
            self._close(now)
        else:
            self._disconnect_at = now + self._timeout
            self.advance(now)

    def send_realtime(self, *commands: int) -> None:
        self._pins_only = False
        if self.exchange is not None:
            self.exchange.send_realtime(*commands)

    def halt(self, why: Refused, now: int) -> None:
        """Brake, and drop the lines that wait."""
        locked = self.alarm is not None or self.state.state in ("Alarm", "Sleep")
        at_rest = locked or self.settled()  # a stop would also end the alarm
        self._drop_all(why, now)
        self.jogging.forget()
        if not at_rest:
            self._interrupt("stop", now)
        self.advance(now)

    def reset(self, why: Refused, now: int, *, unlock: bool) -> None:
        """End everything at once; ``unlock`` also ends an alarm."""
        self._drop_all(why, now)
        self.jogging.forget()
        self.state.stand_still()
        self._interrupt("clear" if unlock else "reset", now)

    def _interrupt(self, event: RecoveryEvent, now: int) -> None:
        """Send a stop or reset; nothing else is sent until it is confirmed."""
        self._pins_only = False
        self._recover(event)
        if self.exchange is None:  # nothing to confirm
            self._recover("confirmed")
            return
        self.exchange.send_realtime(Realtime.STOP if event == "stop" else Realtime.RESET)
        self.exchange.queries_allowed = False
        self._confirmed_by = now + self._timeout

    def request_report(self, now: int) -> None:
        if self.exchange is not None:
            self.exchange.request_report(now)

    # ── time ──

    def next_wake(self) -> int | None:
        if not self.wanted:
            return None
        if self.exchange is None:
            return self.reconnect.due
        moments = [self.exchange.due(), self._disconnect_at, self.jogging.next_wake(self.exchange)]
        moments.append(self._confirmed_by if self._halting else None)
        moments.append(self._poll_at if self.exchange.report_requested_at is None else None)
        return min(moment for moment in moments if moment is not None)

    def wake(self, now: int) -> None:
        if not self.wanted:
            return
        if self.exchange is not None:
            self._check_timeouts(self.exchange, now)
            self.advance(now)
        elif now >= self.reconnect.due and self.reconnect.state == "connecting":
            self.lost(Refused(f"no connection within {self._timeout // NS_PER_MS} ms"), now)
        elif now >= self.reconnect.due:
            self.reconnect.connect(now)
            self.notify_ready()

    def _check_timeouts(self, exchange: LineExchange, now: int) -> None:
        if self._halting and now >= self._confirmed_by:
            within = f"within {self._timeout // NS_PER_MS} ms"
            self._restart(exchange, Refused(f"a stop or reset is not confirmed {within}"), now)
        elif trouble := exchange.overdue(now):
            self._restart(exchange, trouble, now)
        else:
            self.jogging.check_heartbeat(exchange, now)

    # ── receiving ──

    def begin(self, now: int) -> None:
        """The wire has connected."""
        self.reconnect.connected()
        self.state.forget()
        self._pins_only = False
        self.exchange = LineExchange(self.state, self.notify_ready, now, self._timeout)
        self._poll_at = now + self._period
        if self.stop_owed:
            self._interrupt("reset", now)

    def receive(self, data: bytes, now: int) -> None:
        exchange = self.exchange
        for received in exchange.receive(data, now) if exchange is not None else ():
            if self.exchange is exchange:  # an earlier message may have ended the connection
                self._dispatch(received, now)
        self.advance(now)

    def _dispatch(self, received: Received, now: int) -> None:
        if isinstance(received, Answered):
            self._answered(received.line, received.code, now)
        elif isinstance(received, Report):
            self._reported(now)
        elif isinstance(received, Alarm):
            self._alarmed(alarm(received.code), now)
        elif isinstance(received, Banner):
            self._restarted(now)
        elif received == "stopped":
            self._stop_confirmed(now)
        elif self.exchange is not None:
            self._restart(self.exchange, UNEXPECTED, now)

    def _answered(self, line: SentLine, code: int, now: int) -> None:
        if line.kind == "jog":
            if code:
                self.jogging.refused(self.exchange)
        elif code and line.kind != "unlock":
            self._refuse(line, refusal(code, line.text), now)
        elif line.last and line.kind == "line":
            self._accept(line.number, now)
        elif line.text == HOME_ALL:
            self.state.homed = True

    def _reported(self, now: int) -> None:
        if self.state.strange_state:
            self._reported_strange(self.state.strange_state, now)
            return
        self.reconnect.answered()
        self.trouble = None
        if self.state.state != "Alarm":
            self.alarm = None
        elif self.alarm is None and not self.recovering():
            self.alarm = alarm(self.state.substate)
        if self.optional_stop not in (None, self.state.optional_stop):
            self.send_realtime(Realtime.OPTIONAL_STOP)
        for listener in self.report_listeners:
            listener(now)

    def _reported_strange(self, word: str, now: int) -> None:
        """A state that is not known: everything in progress fails, and nothing is sent but
        requests for reports until a known one comes."""
        trouble = Refused(f"the controller reports a state that is not known: {word[:40]}")
        if self.exchange is not None and self.trouble != trouble:
            self._restart(self.exchange, trouble, now)

    def _alarmed(self, why: Refused, now: int) -> None:
        if self.recovering():
            return  # the alarm of a reset in motion; the reset itself was reported
        self.alarm = why
        failed = self.exchange.unanswered_number() if self.exchange is not None else 0
        self._drop_all(why, now, number=failed or self.state.line)
        self.jogging.refused(self.exchange)

    def _stop_confirmed(self, now: int) -> None:
        """The controller has stopped, for any reason; lines in flight are void."""
        if not self._halting:
            self._drop_all(HALTED, now)
        self._recover("confirmed")
        if self.exchange is not None:
            self.exchange.queries_allowed = True
            self.exchange.resynchronize()
        self.jogging.forget()

    def _restarted(self, now: int) -> None:
        """The controller has sent its banner."""
        expected, self.stop_owed = self._halting, False
        self._recover("confirmed")
        self.jogging.forget()
        if self.exchange is None:
            return
        self._pins_only = False
        unanswered = self.exchange.restart(now)
        self.queue.lose_position()
        if unanswered or (self.state.reported_at is not None and not expected):
            self.enabled = False
            self.outcomes.unanswered(unanswered, RESTARTED, now)
            self.outcomes.unsent(self.queue, RESTARTED, now)

    # ── sending ──

    def advance(self, now: int) -> None:
        """Send the lines that can be sent, and request the reports that are needed."""
        exchange = self.exchange
        if exchange is None:
            return
        self._pins_only = self.jogging.over and (self._pins_only or self.settled())
        if not self._halting and exchange.ready:
            if not self._unlocking(exchange):
                self.jogging.advance(exchange, settled=self.settled(), now=now)
                self._send_lines(exchange, now)
            self._finish_program(now)
        if self.exchange is not exchange:
            return
        if now >= self._poll_at:
            self._poll_at += (1 + (now - self._poll_at) // self._period) * self._period
            exchange.request_report(now)
        elif exchange.ready and not (exchange.in_flight or exchange.fresh or self._halting):
            exchange.request_report(now)
        done = self.settled() and not exchange.unsent
        if self._disconnect_at is not None and (done or now >= self._disconnect_at):
            self._close(now)

    def _unlocking(self, exchange: LineExchange) -> bool:
        """Unlock an alarm after a requested reset; return whether recovery continues."""
        if self._recovery == "unlocking" and exchange.fresh and not exchange.in_flight:
            self._recover("reported")
            if self.state.state == "Alarm":
                self._pins_only = False
                exchange.send(SentLine("$X", "unlock"))
        return self.recovering()

    def _send_lines(self, exchange: LineExchange, now: int) -> None:
        while self.queue and self.error is None:
            barred = self.alarm is not None and not self.queue.begins_with("home")
            if barred or (exchange.in_flight and not exchange.awaits("line")):
                return
            line = self.queue.next(self._position(), exchange.fits)
            if line is None:
                return
            if isinstance(line, SentLine):
                self._pins_only = self._pins_only and line.is_pin
                exchange.send(line)
            elif line.refused is not None:
                self._refuse(line, line.refused, now)
            else:
                self._accept(line.number, now)

    def _position(self) -> Joints | None:
        return self.state.position if self.settled() and self.state.known else None

    def _finish_program(self, now: int) -> None:
        program = self.queue.program
        if program is not None and program.over and not self.queue and self.settled():
            self.queue.program = None
            self.outcomes.program(program.ticket, None, now)

    # ── endings ──

    def forget(self, why: Refused, *, wanted: bool, now: int) -> None:
        """Return to the state before the first connection."""
        self.queue.drop()
        self.exchange, self.trouble = None, why
        self._recover("lost")
        self.jogging.forget()
        self.wanted, self.enabled = wanted, False
        self.state.forget()
        self.reconnect.restart(now)
        self.notify_ready()

    def _restart(self, exchange: LineExchange, trouble: Refused, now: int) -> None:
        """Begin the exchange again on the same connection.

        The controller may serve another client for a while and this one again afterwards.
        """
        unanswered, known = exchange.restart(now), self.state.reported_at is not None
        self.trouble, self._pins_only = trouble, False
        if known:
            self.error = self.error or trouble
        self._fail_all(trouble, unanswered, now)
        if self.stop_owed:
            self._interrupt("reset", now)

    def lost(self, trouble: Refused, now: int) -> None:
        """The connection has ended."""
        unanswered = self.exchange.discard() if self.exchange is not None else []
        self.exchange, self.trouble = None, trouble
        self.reconnect.failed(now)
        self._fail_all(trouble, unanswered, now)
        if self._disconnect_at is not None:
            self._close(now)
        self.notify_ready()

    def _fail_all(self, why: Refused, unanswered: list[SentLine], now: int) -> None:
        """Everything in progress has failed; the state of the controller is unknown."""
        self.jogging.forget()
        self._recover("lost")
        self.alarm, self.enabled = None, False
        self.state.forget()
        self.outcomes.unanswered(unanswered, why, now)
        self.outcomes.unsent(self.queue, why, now)

    def _close(self, now: int) -> None:
        self.wanted = False
        self._disconnect_at = None
        if self.exchange is not None:
            self.lost(DISCONNECTED, now)
        self.trouble = None
        self.reconnect.restart(now)
        self.notify_ready()

    def _accept(self, number: int, now: int) -> None:
        self.accepted += bool(number)
        if number and self.queue.program is not None:
            self.queue.program.accepted += 1
        self.outcomes.line(number, None, now)

    def _refuse(self, line: SentLine | UnsentLine, why: Refused, now: int) -> None:
        """A line has failed: no line after it is sent, and those in flight fail as well."""
        self.outcomes.line(line.number, why, now)
        if not (isinstance(line, SentLine) and line.error_cleared):
            self.error = self.error or why
            self.outcomes.unsent(self.queue, why, now, line.number)

    def clear_error(self) -> None:
        """Clear the error; a line in flight that still fails because of it is not a new error."""
        if self.error is None:
            return
        self.error = None
        self.queue.add(QueuedLine(0, "", "clear"))
        if self.exchange is not None:
            self.exchange.mark_error_cleared()

    def _drop_all(self, why: Refused, now: int, number: int = 0) -> None:
        self.stops += 1
        self._pins_only = False
        unanswered = self.exchange.resynchronize() if self.exchange is not None else []
        self.outcomes.unanswered(unanswered, why, now)
        self.outcomes.unsent(self.queue, why, now, number)

    def notify_ready(self) -> None:
        for listener in self.ready_listeners:
            listener()
