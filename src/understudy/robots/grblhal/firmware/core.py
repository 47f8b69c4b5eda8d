"""The heart of a firmware: its state, the program it runs, and what it says about both."""

from understudy.errors import Refused
from understudy.gcode.dialect import Axes
from understudy.gcode.wire import Field, Listener, News, Notice
from understudy.motion.path import TOOL, Floats
from understudy.robots.grblhal.firmware.plant import Figures, Plant
from understudy.robots.grblhal.firmware.state import (
    CRITICAL,
    ESTOP,
    IDLE_ONLY,
    LEAST_RPM,
    LOCKED,
    MOST_RPM,
    MOTOR_FAULT,
    State,
)
from understudy.simulation.program.queue import time_in, whole_ns
from understudy.simulation.program.runner import Runner
from understudy.simulation.program.steps import Homing
from understudy.units import MINUTE, MM, seconds

NOT_IDLE = Refused("only when nothing moves and nothing waits", IDLE_ONLY)
IN_ALARM = Refused("no G-code in alarm or while jogging", LOCKED)

TOLD_AS: dict[int, News] = {ESTOP: "estop", MOTOR_FAULT: "motor fault"}


class Core:
    """Shared by the parts of a firmware; the runner is given once it is made."""

    runner: Runner

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        self.state = State()
        self._listeners: list[Listener] = []

    # ── saying ──

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def emit(self, notice: Notice, now: int) -> None:
        for listener in self._listeners:
            listener(notice, now)

    def answer(self, code: int, now: int) -> None:
        self.emit(Notice("answer", code), now)

    def news(self, name: News, now: int) -> None:
        self.emit(Notice("news", text=name), now)

    def changed(self, now: int, *fields: Field) -> None:
        for name in fields:
            self.emit(Notice("changed", text=name), now)

    # ── how things stand ──

    def moving(self, now: int) -> bool:
        """The axes are under way; a dwell is none of their business."""
        plan = self.runner.queue.plan
        if not len(plan.path) or whole_ns(plan.ends) <= now:
            return False
        return not plan.path.dwell[plan.piece_at(seconds(now))] > 0.0

    def under_way(self, now: int) -> bool:
        """The axes move, whoever has them do so."""
        return self.moving(now) or self.plant.jogged()

    def condition(self, now: int) -> str:
        """In grblHAL's words."""
        state, moving = self.state, self.moving(now)
        if state.asleep:
            return "Sleep"
        if state.locked:
            return "Alarm"
        if state.checking:
            return "Check"
        if state.door:
            return self._door(now)
        if self.runner.queue.held or self.runner.state.paused:
            return "Hold:1" if moving else "Hold:0"
        if state.homing_until is not None or isinstance(self.runner.state.current, Homing):
            return "Home"
        if state.tool is not None:
            return "Tool"
        if moving or self.plant.jogged():
            return "Jog" if state.jogging or not moving else "Run"
        return "Idle"

    def _door(self, now: int) -> str:
        if self.state.reviving is not None:
            return "Door:3"
        return "Door:2" if self.under_way(now) else "Door:0"

    def idle(self, now: int) -> bool:
        """Settings may be changed."""
        return self.condition(now) in ("Idle", "Alarm", "Check")

    def position(self, now: int) -> Axes:
        """As counted in steps, in axis units."""
        return self.runner.mover.axes(self.plant.on_steps(self._where(now)))

    def pace(self, now: int) -> float:
        """How fast it goes along its path, per minute."""
        plan, t = self.runner.queue.plan, seconds(now)
        if not len(plan.path) or whole_ns(plan.ends) <= now:
            return 0.0
        place = plan.place(t)
        unit = MM if plan.path.measure[place.piece] == TOOL else self.plant.unit
        return place.v / unit * MINUTE

    def figures(self) -> Figures:
        return {**self.plant.defaults, **dict(self.state.settings)}

    def rpm(self) -> float:
        """What the spindle turns at."""
        state, speed = self.state, self.runner.state.modal.speed
        if state.spindle == "M5" or speed == 0.0:
            return 0.0
        figures = self.figures()
        percent = state.spindle_percent if state.speed_allowed else 100
        wanted = speed * percent / 100.0
        return max(min(wanted, figures[MOST_RPM]), figures[LEAST_RPM])

    # ── overrides ──

    def set_pace(self, now: int) -> None:
        """Let the overrides act, as far as the program allows: feed and rapid go together."""
        state = self.state
        feed, rapid = (state.feed, state.rapid) if state.feed_allowed else (100, 100)
        self.runner.override(now, feed=feed / 100.0, rapid=rapid / 100.0)

    # ── alarms and rest ──

    def press(self, alarm: int, now: int) -> None:
        """Emergency stop or motor fault: nothing moves from now on, and no reset helps."""
        if not self.state.pressed:
            self.runner.halt(now)
            self.sync(now)
            self.state.pressed = True
            self.lock(alarm, now)

    def lock(self, alarm: int, now: int) -> None:
        """Nothing moves any more, and nothing will until somebody says so."""
        state = self.state
        state.alarm, state.locked, state.reviving = alarm, True, None
        state.critical = alarm in CRITICAL
        self.emit(Notice("alarm", alarm), now)
        if state.critical:
            self.news(TOLD_AS.get(alarm, "critical"), now)
            self.emit(Notice("flush"), now)
            self.emit(Notice("void"), now)

    def sync(self, now: int) -> None:
        """The axes stand where their steps say; the program goes on from there."""
        self.runner.go_on_from(self.plant.on_steps(self._where(now)), now)

    def silence(self, now: int) -> None:
        """Spindle and coolant off."""
        state = self.state
        state.spindle, state.flood, state.mist = "M5", False, False
        self.changed(now, "spindle", "coolant")
        self.throw(now)

    def throw(self, now: int) -> None:
        """Let spindle and coolant be what the state says, where no line has seen to it."""
        state = self.state
        self.plant.switch(state.spindle != "M5", state.flood or state.mist, now)

    def stir(self, now: int) -> None:
        """Be woken at this very moment: whoever waits may go on."""
        self.state.resume_at = now

    def _where(self, now: int) -> Floats:
        if self.plant.where is not None:
            return self.plant.where(now)
        plan = self.runner.queue.plan
        return plan.at(time_in(plan, now)).position
