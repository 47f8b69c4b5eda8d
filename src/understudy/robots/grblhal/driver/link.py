"""The line to a real grblHAL, call after call: what is under way on it, and how that ends."""

from collections.abc import Callable

from understudy.errors import Refused
from understudy.ports import Joints
from understudy.protocol.client import ReconnectSchedule
from understudy.robots.grblhal.driver.ends import Ends
from understudy.robots.grblhal.driver.jog import Jogging
from understudy.robots.grblhal.driver.lines import Ended, Lines, Order
from understudy.robots.grblhal.driver.picture import Picture
from understudy.robots.grblhal.driver.talk import Answered, Heard, Said, Talk
from understudy.robots.grblhal.driver.words import (
    OPTIONAL_STOP,
    RESET,
    STOP,
    Alarm,
    Banner,
    Report,
    alarm,
    refusal,
)
from understudy.units import NS_PER_MS

HOME_ALL = "$H"
HUNG_UP = Refused("disconnected")
HALTED = Refused("stopped")
BEGAN_ANEW = Refused("the controller has begun anew")
STRAY = Refused("the controller answers what nobody asked: lines and answers no longer match")


class Link:
    """Knows bytes and time; what may be asked of it is the driver's affair."""

    def __init__(
        self, picture: Picture, lines: Lines, jogging: Jogging, reconnect: ReconnectSchedule, *,
        patience: int, period: int,
    ) -> None:  # fmt: skip
        self.picture = picture
        self.lines = lines
        self.reconnect = reconnect
        self.jogging = jogging
        self._patience, self._period = patience, period
        self.called = self.enabled = False
        self.talk: Talk | None = None
        self.trouble: Refused | None = None
        self.stopped: Refused | None = None
        self.alarm: Refused | None = None
        self.error: Refused | None = None
        self.stop_owed = False
        self.optional_stop: bool | None = None
        self.taken = self.stops = 0
        self._halts_until: int | None = None
        """A reset or a stop was said and must be confirmed by then."""
        self._unlocks = False
        self._leaves_at: int | None = None
        self._poll_at = 0
        self.ends = Ends()
        self.report_listeners: list[Callable[[int], None]] = []
        self.stir_listeners: list[Callable[[], None]] = []

    # ── how things stand ──

    def connected(self) -> bool:
        return self.talk is not None and self.picture.told_at is not None

    def settled(self) -> bool:
        """All that was said is done, as far as the controller's last word goes."""
        talk = self.talk
        if talk is None or not (talk.ready and talk.fresh) or talk.in_flight:
            return False
        return self.picture.drained and self._halts_until is None

    def under_way(self) -> bool:
        """Something goes on, or is about to."""
        if self.talk is None:
            return False
        return bool(self.lines) or not self.jogging.over or not self.settled()

    def occupied(self) -> bool:
        """With lines, a jog, or something that nobody here has begun."""
        asked = self.talk is None or not self.talk.in_flight or self.talk.awaits("question")
        return bool(self.lines) or not (self.jogging.over and asked) or self.picture.moves

    def recovering(self) -> bool:
        """A stop, a reset or an unlocking is not through yet."""
        unlocks = self.talk is not None and self.talk.awaits("unlock")
        return unlocks or self._unlocks or self._halts_until is not None

    # ── deeds ──

    def call(self, now: int) -> None:
        self._leaves_at = None
        if not self.called:
            self.called = True
            self.reconnect.restart(now)
            self.reconnect.connect(now)
            self.stir()

    def leave(self, now: int) -> None:
        """Hang up, when what was said last has been heard."""
        if self.talk is None:
            self._hang_up(now)
        else:
            self._leaves_at = now + self._patience
            self.go_on(now)

    def say(self, data: bytes) -> None:
        if self.talk is not None:
            self.talk.byte(data)

    def halt(self, why: Refused, now: int) -> None:
        """Brake, and forget what waits."""
        locked = self.alarm is not None or self.picture.state in ("Alarm", "Sleep")
        stands = locked or self.settled()  # a stop would also end the alarm
        self._drop_all(why, now)
        self.jogging.forget()
        if self.talk is not None and not stands:
            self._cut_off(STOP, now)
        self.go_on(now)

    def reset(self, why: Refused, now: int, *, unlock: bool) -> None:
        """Everything ends at once; ``unlock``: an alarm does not outlive it."""
        self._drop_all(why, now)
        self.jogging.forget()
        self.picture.stand_still()
        self._unlocks = unlock
        self._cut_off(RESET, now)

    def _cut_off(self, data: bytes, now: int) -> None:
        """Nothing is said or asked until this is confirmed."""
        if self.talk is not None:
            self.talk.byte(data)
            self.talk.asks = False
            self._halts_until = now + self._patience

    def look(self, now: int) -> None:
        if self.talk is not None:
            self.talk.look(now)

    # ── time ──

    def next_wake(self) -> int | None:
        if not self.called:
            return None
        if self.talk is None:
            return self.reconnect.due
        moments = [self.talk.due(), self._halts_until, self._leaves_at]
        if self.talk.asked_at is None:
            moments.append(self._poll_at)
        moments.append(self.jogging.next_wake(self.talk))
        return min(moment for moment in moments if moment is not None)

    def wake(self, now: int) -> None:
        if not self.called:
            return
        if self.talk is not None:
            self._watch(self.talk, now)
            self.go_on(now)
        elif now >= self.reconnect.due and self.reconnect.state == "connecting":
            self.break_off(Refused(f"no connection within {self._patience // NS_PER_MS} ms"), now)
        elif now >= self.reconnect.due:
            self.reconnect.connect(now)
            self.stir()

    def _watch(self, talk: Talk, now: int) -> None:
        """Whether patience has come to an end."""
        if self._halts_until is not None and now >= self._halts_until:
            within = f"within {self._patience // NS_PER_MS} ms"
            self._give_up(talk, Refused(f"a stop or reset is not confirmed {within}"), now)
        elif trouble := talk.overdue(now):
            self._give_up(talk, trouble, now)
        else:
            self.jogging.watch(talk, now)

    # ── the line ──

    def begin(self, now: int) -> None:
        self.reconnect.connected()
        self.picture.forget()
        self.talk = Talk(self.picture, self.stir, now, self._patience)
        self._poll_at = now + self._period
        if self.stop_owed:
            self._cut_off(RESET, now)

    def receive(self, data: bytes, now: int) -> None:
        talk = self.talk
        for heard in talk.hear(data, now) if talk is not None else ():
            if self.talk is talk:  # what came before it may have ended the call
                self._understand(heard, now)
        self.go_on(now)

    def _understand(self, heard: Heard, now: int) -> None:
        if isinstance(heard, Answered):
            self._answered(heard.said, heard.code, now)
        elif isinstance(heard, Report):
            self._reported(now)
        elif isinstance(heard, Alarm):
            self._alarmed(alarm(heard.code), now)
        elif isinstance(heard, Banner):
            self._begun_anew(now)
        elif heard == "stopped":
            self._halted(now)
        elif self.talk is not None:
            self._give_up(self.talk, STRAY, now)

    def _answered(self, said: Said, code: int, now: int) -> None:
        if said.kind == "jog":
            if code:
                self.jogging.refused(self.talk)
        elif code and said.kind != "unlock":
            self._refuse(said, refusal(code, said.text), now)
        elif said.last and said.kind == "line":
            self._taken(said.number, now)
        elif said.text == HOME_ALL:
            self.picture.homed = True

    def _reported(self, now: int) -> None:
        self.reconnect.answered()
        self.trouble = None
        if self.picture.state != "Alarm":
            self.alarm = None
        elif self.alarm is None and not self.recovering():
            self.alarm = alarm(self.picture.substate)
        if self.optional_stop not in (None, self.picture.stops_optionally):
            self.say(OPTIONAL_STOP)
        for listener in self.report_listeners:
            listener(now)

    def _alarmed(self, why: Refused, now: int) -> None:
        if self.recovering():
            return  # the alarm of a reset in motion; the reset itself was told
        self.alarm = why
        culprit = self.talk.unanswered_line() if self.talk is not None else 0
        self._drop_all(why, now, number=culprit or self.picture.line)
        self.jogging.refused(self.talk)

    def _halted(self, now: int) -> None:
        """A stop is confirmed; whoever else stopped it, what was in flight is void."""
        expected, self._halts_until = self._halts_until is not None, None
        if not expected:
            self._drop_all(HALTED, now)
        if self.talk is not None:
            self.talk.asks = True
            self.talk.find_out()
        self.jogging.forget()

    def _begun_anew(self, now: int) -> None:
        expected, self._halts_until, self.stop_owed = self._halts_until is not None, None, False
        self.jogging.forget()
        if self.talk is None:
            return
        lost = self.talk.begin(now)
        self.lines.lose_track()
        if lost or (self.picture.told_at is not None and not expected):
            self.enabled = False
            self.ends.lost(lost, BEGAN_ANEW, now)
            self.ends.unsaid(self.lines, BEGAN_ANEW, now)

    # ── going on ──

    def go_on(self, now: int) -> None:
        """Say what there is to say, and ask what must be known."""
        talk = self.talk
        if talk is None:
            return
        if self._halts_until is None and talk.ready:
            if not self._unlocking(talk):
                self.jogging.go_on(talk, settled=self.settled(), now=now)
                self._say_lines(talk, now)
            self._finish(now)
        if self.talk is not talk:
            return
        if now >= self._poll_at:
            self._poll_at += (1 + (now - self._poll_at) // self._period) * self._period
            talk.look(now)
        elif talk.ready and not (talk.in_flight or talk.fresh) and self._halts_until is None:
            talk.look(now)
        heard = self.settled() and not talk.unsaid
        if self._leaves_at is not None and (heard or now >= self._leaves_at):
            self._hang_up(now)

    def _unlocking(self, talk: Talk) -> bool:
        """After a reset that was asked for, an alarm is unlocked; does that go on?"""
        if self._unlocks and talk.fresh and not talk.in_flight:
            self._unlocks = False
            if self.picture.state == "Alarm":
                talk.say(Said("$X", "unlock"))
        return self.recovering()

    def _say_lines(self, talk: Talk, now: int) -> None:
        while self.lines and self.error is None:
            barred = self.alarm is not None and not self.lines.begin_with("home")
            if barred or (talk.in_flight and not talk.awaits("line")):
                return
            said = self.lines.next(self._where(), talk.fits)
            if said is None:
                return
            if isinstance(said, Said):
                talk.say(said)
            elif said.refused is not None:
                self._refuse(said, said.refused, now)
            else:
                self._taken(said.number, now)

    def _where(self) -> Joints | None:
        return self.picture.position if self.settled() and self.picture.known else None

    def _finish(self, now: int) -> None:
        job = self.lines.job
        if job is not None and job.over and not self.lines and self.settled():
            self.lines.job = None
            self.ends.job(job.ticket, None, now)

    # ── how things end ──

    def begin_anew(self, why: Refused, *, called: bool, now: int) -> None:
        """As if nobody had been called yet."""
        self.lines.drop()
        self.talk, self.trouble = None, why
        self.jogging.forget()
        self.called, self.enabled = called, False
        self.picture.forget()
        self.reconnect.restart(now)
        self.stir()

    def _give_up(self, talk: Talk, trouble: Refused, now: int) -> None:
        """We no longer understand each other: begin anew, on the same line.

        Whoever has merely been forgotten for another sender is heard again once that has left.
        """
        lost, known = talk.begin(now), self.picture.told_at is not None
        self.trouble = trouble
        if known:
            self.error = self.error or trouble
        self._forget(trouble, lost, now)
        if self.stop_owed:
            self._cut_off(RESET, now)

    def break_off(self, trouble: Refused, now: int) -> None:
        """The call is over."""
        lost = self.talk.void() if self.talk is not None else []
        self.talk, self.trouble = None, trouble
        self.reconnect.failed(now)
        self._forget(trouble, lost, now)
        if self._leaves_at is not None:
            self._hang_up(now)
        self.stir()

    def _forget(self, why: Refused, lost: list[Said], now: int) -> None:
        """Nothing is known any more; what was under way has failed."""
        self.jogging.forget()
        self._halts_until, self._unlocks = None, False
        self.alarm, self.enabled = None, False
        self.picture.forget()
        self.ends.lost(lost, why, now)
        self.ends.unsaid(self.lines, why, now)

    def _hang_up(self, now: int) -> None:
        self.called = False
        self._leaves_at = None
        if self.talk is not None:
            self.break_off(HUNG_UP, now)
        self.trouble = None
        self.reconnect.restart(now)
        self.stir()

    def _taken(self, number: int, now: int) -> None:
        self.taken += bool(number)
        if number and self.lines.job is not None:
            self.lines.job.taken += 1
        self.ends.line(number, None, now)

    def _refuse(self, line: Said | Ended, why: Refused, now: int) -> None:
        """A line failed: none behind it will be said, and those in flight fail as well."""
        self.ends.line(line.number, why, now)
        if not (isinstance(line, Said) and line.forgiven):
            self.error = self.error or why
            self.ends.unsaid(self.lines, why, now, line.number)

    def forgive(self) -> None:
        """The error is over; what still fails because of it is no new one."""
        if self.error is None:
            return
        self.error = None
        self.lines.add(Order(0, "", "clear"))
        if self.talk is not None:
            self.talk.forgive()

    def _drop_all(self, why: Refused, now: int, number: int = 0) -> None:
        self.stops += 1
        self.ends.lost(self.talk.find_out() if self.talk is not None else [], why, now)
        self.ends.unsaid(self.lines, why, now, number)

    def stir(self) -> None:
        for listener in self.stir_listeners:
            listener()
