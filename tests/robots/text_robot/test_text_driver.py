"""The driver of the text robot: its requests, their times, and its reaction to answers."""

import math
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.robots.text_robot.driver_bench import DriverBench, Ended

from understudy.errors import Refused
from understudy.ports import UNLIMITED, Ticket
from understudy.robots.text_robot.driver import (
    PENDING_LIMIT,
    QUEUE_LIMIT,
    Condition,
    Config,
    TextTcpDriver,
    build,
    decimal,
    read_answer,
    request_of,
)
from understudy.robots.text_robot.robot import Config as RobotConfig
from understudy.robots.text_robot.robot import EnvelopeMm
from understudy.simulation.scenario import Rule
from understudy.space.pose import ORIGIN, Pose
from understudy.units import DEG, MM, NS_PER_MS, nanoseconds, seconds

STOPPED = Refused("Robot in emergency stop state", code=4)
POSITION = b"OK 1.00,2.00,3.00,0.00,0.00,90.00\n"
IDLE = b"OK Idle,27.5,0,10\n"
LOCKED = b"OK EmergencyStopped,27.5,4,0\n"
POLL = "GET_POS GET_STATUS"


class Desk:
    """A driver; the test plays its robot line by line."""

    def __init__(self, config: Config = Config()) -> None:  # noqa: B008
        self.driver: TextTcpDriver = build(config)
        self.now = 0
        self.ended: list[Ended] = []
        self.driver.on_finished(lambda *end: self.ended.append(end))
        self.driver.wake(0)

    def connect(self) -> "Desk":
        self.driver.connected(self.now)
        return self

    def ready(self) -> "Desk":
        self.connect()
        assert self.said() == POLL
        self.hear(POSITION + IDLE)
        return self

    def hear(self, data: bytes) -> None:
        self.driver.receive(data, self.now)

    def said(self) -> str:
        words = b""
        while data := self.driver.take(UNLIMITED):
            words += data
        return " ".join(words.decode().splitlines())

    def advance(self, seconds: float) -> None:
        to = self.now + nanoseconds(seconds)
        while (at := self.driver.next_wake()) is not None and at <= to:
            self.now = max(self.now, at)
            self.driver.wake(self.now)
        self.now = to

    def move(self) -> Ticket:
        ticket = self.driver.move_to(ORIGIN, self.now)
        assert not isinstance(ticket, Refused)
        return ticket

    def outcome(self, ticket: Ticket) -> Refused | None:
        (outcome,) = [outcome for ended, outcome, _ in self.ended if ended == ticket]
        return outcome

    @property
    def trouble(self) -> str:
        return self.driver.status(self.now).trouble

    @property
    def state(self) -> str:
        return self.driver.reading(self.now).state

    @property
    def error_code(self) -> int:
        return self.driver.reading(self.now).error_code


# ── connecting ──────────────────────────────────────────────────────────────────────────────────


def test_connecting_only_polls() -> None:
    bench = DriverBench()
    bench.advance(1.0)
    assert set(bench.received_by_robot()) == {"GET_POS", "GET_STATUS"}


def test_before_the_first_answer_the_state_is_unknown() -> None:
    desk = Desk()
    assert (desk.state, desk.error_code) == ("Unknown", 5)
    assert math.isnan(desk.driver.reading(0).pose.x)
    refused = desk.driver.move_to(ORIGIN, 0)
    assert refused == Refused("Connection lost: the robot was not reached yet", code=5)
    desk.connect()
    assert (desk.state, desk.error_code) == ("Unknown", 5)
    assert isinstance(desk.driver.home(0), Refused)
    desk.hear(POSITION)
    assert desk.state == "Unknown"
    desk.hear(IDLE)
    assert desk.state == "Idle"


def test_pauses_grow_with_each_failure_and_restart_after_an_answer() -> None:
    bench = DriverBench(Config(command_timeout_ms=500))
    bench.reachable = False
    bench.pull()
    rests = []
    for _ in range(6):
        due = bench.robot.next_wake()
        assert due is not None
        rests.append(seconds(due - bench.now))
        bench.advance(rests[-1])
    assert rests == [1, 2, 4, 8, 16, 16]
    bench.reachable = True
    bench.advance(16)
    assert bench.robot.reading(bench.now).state == "Idle"
    bench.reachable = False
    bench.pull()
    assert bench.robot.next_wake() == bench.now + nanoseconds(1.0)


def test_a_connection_without_an_answer_does_not_shorten_the_pause() -> None:
    desk = Desk()
    rests = []
    for _ in range(3):
        desk.connect()
        desk.driver.lost(desk.now, "closed")
        due = desk.driver.next_wake()
        assert due is not None
        rests.append(seconds(due - desk.now))
        desk.advance(rests[-1])
    assert rests == [1, 2, 4]


def test_a_connection_attempt_times_out() -> None:
    desk = Desk()
    assert desk.driver.wanted() == 1
    desk.advance(3.0)
    assert desk.driver.wanted() is None
    assert desk.trouble == "Connection lost: no connection within 3000 ms"
    desk.advance(1.0)
    assert desk.driver.wanted() == 2


# ── polling ─────────────────────────────────────────────────────────────────────────────────────


def test_polls_every_period_from_the_connection_on() -> None:
    bench = DriverBench(Config(poll_ms=100))
    bench.advance(1.05)
    polls = [e.at for e in bench.virtual_cell.transcript if e.data == b"GET_POS\n"]
    assert polls == [n * 100 * NS_PER_MS for n in range(11)]


def test_the_reading_is_the_last_report() -> None:
    desk = Desk().ready()
    reading = desk.driver.reading(desk.now)
    assert reading.pose == Pose(1 * MM, 2 * MM, 3 * MM, 0.0, 0.0, 90 * DEG)
    assert (reading.temperature_c, reading.error_code, reading.load_percent) == (27.5, 0, 10)
    desk.advance(0.1)
    desk.hear(b"OK 4,5,6,0,0,0\nOK Moving,28.1,6,75\n")
    reading = desk.driver.reading(desk.now)
    assert reading.pose == Pose(4 * MM, 5 * MM, 6 * MM, 0.0, 0.0, 0.0)
    assert reading.state == "Moving"
    assert (reading.temperature_c, reading.error_code, reading.load_percent) == (28.1, 6, 75)
    assert desk.driver.status(desk.now).reported_at == nanoseconds(0.1)


def test_no_poll_while_an_answer_is_pending_but_right_after() -> None:
    desk = Desk().ready()
    desk.move()
    assert desk.said().startswith("MOVE_ABS")
    desk.advance(0.45)
    assert desk.said() == ""
    desk.hear(b"OK Movement completed\n")
    assert desk.said() == POLL
    desk.hear(POSITION + IDLE)
    desk.advance(0.049)
    assert desk.said() == ""
    desk.advance(0.001)
    assert desk.said() == POLL


def test_a_poll_that_the_robot_refuses_changes_nothing() -> None:
    desk = Desk().ready()
    before = desk.driver.reading(0)
    desk.advance(0.1)
    desk.hear(b"ERROR Communication timeout\nERROR Communication timeout\n")
    assert desk.driver.reading(desk.now) == before
    assert desk.driver.stopped() is None


# ── moving ──────────────────────────────────────────────────────────────────────────────────────


def test_one_move_is_sent_at_a_time() -> None:
    desk = Desk().ready()
    desk.driver.move_by(1 * MM, 0.0, -0.5 * MM, desk.now)
    desk.driver.home(desk.now)
    assert desk.said() == "MOVE_REL 1.00,0.00,-0.50"
    desk.hear(b"OK Movement completed\n")
    assert desk.said() == POLL
    desk.hear(POSITION + IDLE)
    assert desk.said() == "HOME"


def test_the_queue_of_moves_is_bounded() -> None:
    desk = Desk().ready()
    for _ in range(QUEUE_LIMIT + 1):
        desk.move()
    assert desk.driver.home(desk.now) == Refused("1024 moves are waiting already", code=4)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e307])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    desk = Desk().ready()
    refused = desk.driver.move_by(value, 0.0, 0.0, desk.now)
    assert refused == Refused("Invalid parameters (expected: dx,dy,dz)", code=3)
    assert (desk.said(), desk.error_code) == ("", 3)


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        ("Communication timeout", Refused("Communication timeout", 1)),
        ("Target outside work envelope", Refused("Target outside work envelope", 2)),
        (
            "Invalid parameters (expected: x,y,z,rx,ry,rz)",
            Refused("Invalid parameters (expected: x,y,z,rx,ry,rz)", 3),
        ),
        ("Robot in emergency stop state", STOPPED),
        ("Unknown command: MOVE_ABS", Refused("Unknown command: MOVE_ABS", 0)),
        ("Gurke \x00 zu groß", Refused("Gurke ? zu gro?", 0)),
    ],
)
def test_refusals_carry_the_error_code(answer: str, refusal: Refused) -> None:
    desk = Desk().ready()
    ticket = desk.move()
    desk.hear(b"ERROR " + answer.encode("latin-1") + b"\n" + POSITION + IDLE)
    assert desk.outcome(ticket) == refusal


def test_refusals_of_the_simulated_robot_arrive() -> None:
    bench = DriverBench(robot_config=RobotConfig(envelope_mm=EnvelopeMm()))
    outside = bench.do(lambda now: bench.robot.move_to(Pose(9.0, 0.0, 0.0, 0.0, 0.0, 0.0), now))
    assert bench.ended == [(outside, Refused("Target outside work envelope", code=2), 0)]
    assert bench.robot.reading(bench.now).error_code == 2


def test_a_move_ends_after_the_next_poll() -> None:
    desk = Desk().ready()
    poses = []
    desk.driver.on_finished(lambda _, __, now: poses.append(desk.driver.reading(now).pose))
    desk.move()
    desk.hear(b"OK Movement completed\n")
    assert desk.driver.busy()
    assert not desk.ended
    desk.hear(b"OK 0,0,0,0,0,0\n" + IDLE)
    assert poses == [ORIGIN]
    assert not desk.driver.busy()


@pytest.mark.parametrize("then", ["lost", "stopped", "poll refused"])
def test_a_completed_move_stays_completed_before_its_end_is_reported(then: str) -> None:
    desk = Desk().ready()
    completed, unsaid = desk.move(), desk.move()
    desk.hear(b"OK Movement completed\n")
    if then == "lost":
        desk.driver.lost(desk.now, "gone")
    elif then == "stopped":
        desk.driver.stop(desk.now)
    else:
        desk.hear(b"ERROR Communication timeout\n" * 2)
    assert desk.outcome(completed) is None
    assert desk.ended[0][0] == completed
    assert [ticket for ticket, *_ in desk.ended[1:]] == ([] if "poll" in then else [unsaid])


def test_a_lost_command_is_refused_and_the_next_one_is_sent() -> None:
    """RESET, like every command except STOP, may be lost in the robot."""
    lost = Rule("communication_timeout", "bench.text_tcp", from_s=0.55, until_s=0.56)
    bench = DriverBench(rules={"lost": lost})
    bench.advance(0.55)
    first = bench.do(lambda now: bench.robot.move_by(1 * MM, 0.0, 0.0, now))
    assert bench.ended == [(first, Refused("Communication timeout", code=1), nanoseconds(0.55))]
    bench.advance(0.05)
    assert bench.robot.reading(bench.now).error_code == 1
    second = bench.do(lambda now: bench.robot.move_by(1 * MM, 0.0, 0.0, now))
    bench.advance(0.2)
    assert bench.ended[1:] == [(second, None, nanoseconds(0.8))]


# ── stop and reset ──────────────────────────────────────────────────────────────────────────────


def test_stop_is_sent_behind_a_pending_move() -> None:
    desk = Desk().ready()
    desk.move()
    desk.said()
    desk.driver.stop(desk.now)
    desk.driver.stop(desk.now)
    assert desk.said() == "STOP"
    desk.hear(b"ERROR Robot in emergency stop state\nOK Emergency stop executed\n")
    assert desk.said() == POLL
    desk.hear(POSITION + LOCKED)
    assert desk.state == "EmergencyStopped"
    assert len(desk.ended) == 1


def test_a_move_that_ended_before_the_stop_stays_refused() -> None:
    desk = Desk().ready()
    ticket = desk.move()
    desk.driver.stop(desk.now)
    desk.hear(b"OK Movement completed\nOK Emergency stop executed\n")
    assert desk.outcome(ticket) == STOPPED
    assert desk.driver.stopped() == STOPPED


def test_reset_is_sent_behind_a_pending_move() -> None:
    desk = Desk().ready()
    ticket = desk.move()
    desk.driver.reset(desk.now)
    assert desk.said().endswith("RESET")
    desk.hear(b"OK Movement completed\nOK Error reset\n" + POSITION + IDLE)
    assert desk.outcome(ticket) is None


def test_each_stop_is_pending_until_its_own_answer() -> None:
    desk = Desk().ready()
    for deed in (desk.driver.stop, desk.driver.reset, desk.driver.stop):
        deed(desk.now)
    desk.hear(b"OK Emergency stop executed\n")
    assert desk.driver.home(desk.now) == STOPPED
    desk.hear(b"OK Error reset\n")
    assert desk.driver.home(desk.now) == STOPPED


def test_reset_does_not_change_the_reported_motion() -> None:
    desk = Desk().connect()
    desk.hear(POSITION + b"OK Moving,27.5,1,75\n")
    desk.driver.reset(desk.now)
    desk.hear(b"OK Error reset\n")
    assert (desk.state, desk.error_code) == ("Moving", 0)


def test_a_move_behind_a_reset_waits_for_its_answer() -> None:
    desk = Desk().connect()
    desk.hear(POSITION + LOCKED)
    desk.said()
    assert desk.driver.home(desk.now) == STOPPED
    desk.driver.reset(desk.now)
    desk.driver.home(desk.now)
    assert desk.said() == "RESET"
    desk.hear(b"OK Error reset\n" + POSITION + IDLE)
    assert desk.said() == f"{POLL} HOME"


def test_a_move_behind_a_failed_reset_is_refused_and_never_sent() -> None:
    desk = Desk().connect()
    desk.hear(POSITION + LOCKED)
    desk.driver.reset(desk.now)
    ticket = desk.move()
    desk.hear(b"ERROR Communication timeout\n")
    assert desk.outcome(ticket) == STOPPED
    assert "MOVE" not in desk.said()


@pytest.mark.parametrize("sign", ["by its answer", "by a poll"])
def test_a_stop_by_another_client_refuses_the_queued_moves(sign: str) -> None:
    """Otherwise the moves would start as soon as the other client resets the robot."""
    desk = Desk().ready()
    first, second = desk.move(), desk.move()
    if sign == "by its answer":
        desk.hear(b"ERROR Robot in emergency stop state\n")
        assert desk.outcome(first) == STOPPED
    else:
        desk.hear(b"OK Movement completed\n" + POSITION + LOCKED)
        assert desk.outcome(first) is None
    assert desk.outcome(second) == STOPPED


def test_a_reset_does_not_restore_moves_queued_before_the_stop() -> None:
    desk = Desk().ready()
    before = [desk.move(), desk.move()]
    desk.driver.reset(desk.now)
    after = desk.move()
    desk.said()
    desk.hear(b"ERROR Robot in emergency stop state\n")
    assert [(ticket, outcome) for ticket, outcome, _ in desk.ended] == [
        (ticket, STOPPED) for ticket in before
    ]
    desk.hear(b"OK Error reset\n" + POSITION + IDLE)
    assert desk.said() == f"{POLL} MOVE_ABS 0.00,0.00,0.00,0.00,0.00,0.00"
    desk.hear(b"OK Movement completed\n" + POSITION + IDLE)
    assert desk.outcome(after) is None


@pytest.mark.parametrize("stop", ["never sent", "sent and not confirmed"])
def test_an_unconfirmed_stop_is_the_first_command_of_the_next_connection(stop: str) -> None:
    desk = Desk().ready()
    if stop == "sent and not confirmed":
        desk.driver.stop(desk.now)
    desk.driver.lost(desk.now, "gone")
    desk.driver.stop(desk.now)
    desk.advance(1.0)
    desk.connect()
    assert desk.said() == "STOP"
    desk.hear(b"OK Emergency stop executed\n" + POSITION + LOCKED)
    assert desk.driver.stopped() == STOPPED


def test_a_stop_that_was_reset_before_it_was_sent_is_not_sent() -> None:
    desk = Desk()
    desk.driver.stop(desk.now)
    desk.driver.reset(desk.now)
    desk.connect()
    assert desk.said() == POLL


def test_a_refused_stop_does_not_lock_the_driver() -> None:
    desk = Desk().ready()
    desk.driver.stop(desk.now)
    assert desk.driver.stopped() == STOPPED
    desk.hear(b"ERROR Unknown command: STOP\n" + POSITION + IDLE)
    assert desk.driver.stopped() is None


def test_unanswered_commands_do_not_accumulate() -> None:
    desk = Desk().ready()
    for _ in range(PENDING_LIMIT):
        desk.driver.stop(desk.now)
        desk.driver.reset(desk.now)
    assert desk.driver.wanted() is None
    assert desk.trouble == "Communication timeout: more than 64 answers are pending"


# ── broken connections ──────────────────────────────────────────────────────────────────────────


def test_a_robot_that_never_answers() -> None:
    desk = Desk().ready()
    said, unsaid = desk.move(), desk.move()
    desk.advance(2.999)
    assert not desk.ended
    desk.advance(0.001)
    late = "Communication timeout: no answer to MOVE_ABS within 3000 ms"
    assert desk.outcome(said) == Refused(late, code=1)
    assert desk.outcome(unsaid) == Refused(f"Not sent. {late}", code=1)
    assert (desk.state, desk.error_code) == ("Unknown", 1)
    assert desk.driver.wanted() is None
    assert desk.driver.home(desk.now) == Refused(late, code=1)


def test_an_unanswered_poll_ends_the_connection() -> None:
    desk = Desk().ready()
    desk.advance(0.1)
    desk.hear(POSITION)
    desk.advance(3.0)
    assert desk.trouble == "Communication timeout: no answer to GET_STATUS within 3000 ms"


def test_a_late_answer_is_not_taken_for_another() -> None:
    desk = Desk().ready()
    desk.move()
    desk.said()
    desk.advance(4.0)
    desk.connect()
    assert desk.said() == POLL
    desk.hear(POSITION + IDLE)
    assert desk.state == "Idle"
    assert [outcome is None for _, outcome, _ in desk.ended] == [False]


def test_a_connection_lost_in_the_middle_of_a_move() -> None:
    bench = DriverBench()
    tickets = [
        bench.do(lambda now: bench.robot.move_by(1 * MM, 0.0, 0.0, now)),
        bench.do(bench.robot.home),
    ]
    bench.advance(0.1)
    bench.pull()
    lost = "Connection lost: the cable was pulled"
    assert bench.ended == [
        (tickets[0], Refused(lost, code=5), nanoseconds(0.1)),
        (tickets[1], Refused(f"Not sent. {lost}", code=5), nanoseconds(0.1)),
    ]
    reading = bench.robot.reading(bench.now)
    assert (reading.state, reading.error_code) == ("Unknown", 5)
    bench.advance(1.0)
    assert bench.robot.reading(bench.now).state == "Idle"
    assert bench.robot.reading(bench.now).error_code == 5
    assert bench.robot.stopped() is None
    assert bench.moves() == ["MOVE_REL 1.00,0.00,0.00"]
    bench.do(bench.robot.reset)
    assert bench.robot.reading(bench.now).error_code == 0


@pytest.mark.parametrize(
    "garbage",
    [
        b"\n",
        b"OK\n",
        b"ERROR\n",
        b"ok 1,2,3,4,5,6\n",
        b"OK 1,2,3,4,5\n",
        b"OK 1,2,3,4,5,nan\n",
        b"OK 1,2,3,4,5,6,7\n",
        b"OK 1,2,3,4,5," + b"9" * 400 + b"\n",
        b"OK Movement completed\n",
        b"\xff\xfe\x00\n",
        POSITION + b"OK idle,27.5,0,10\n",
        POSITION + b"OK Idle,27.5,0\n",
        POSITION + b"OK Idle,27.5,0,10,1\n",
        POSITION + b"OK Idle,warm,0,10\n",
        POSITION + b"OK Idle,27.5,-1,10\n",
        POSITION + b"OK Idle,27.5,0,1e1\n",
        POSITION + IDLE + b"OK Hello\n",
    ],
)
def test_garbage_ends_the_connection_with_a_reason(garbage: bytes) -> None:
    desk = Desk().connect()
    desk.hear(garbage)
    assert desk.driver.wanted() is None
    assert (desk.state, desk.error_code) == ("Unknown", 1)
    assert "is no answer to" in desk.trouble
    assert desk.trouble.isascii()
    assert desk.trouble.isprintable()


def test_a_wrong_answer_refuses_the_move() -> None:
    desk = Desk().ready()
    ticket = desk.move()
    desk.hear(b"OK Homing completed\n")
    reason = "Communication timeout: 'OK Homing completed' is no answer to MOVE_ABS"
    assert desk.outcome(ticket) == Refused(reason, code=1)


def test_lines_after_garbage_are_ignored() -> None:
    desk = Desk().connect()
    desk.hear(b"garbage\n" + POSITION + IDLE)
    assert desk.state == "Unknown"


@pytest.mark.parametrize("size", [4097, 4098, 1_000_000])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_an_endless_line_ends_the_connection(size: int, end: bytes) -> None:
    desk = Desk().connect()
    desk.hear(b"x" * size + end)
    desk.hear(b"x")
    assert desk.driver.wanted() is None
    assert "more than 4096 bytes" in desk.trouble


def test_lines_may_end_with_a_carriage_return() -> None:
    desk = Desk().connect()
    desk.hear(POSITION.replace(b"\n", b"\r\n") + IDLE.replace(b"\n", b"\r\n"))
    assert desk.state == "Idle"


def test_half_a_line_does_not_survive_the_connection() -> None:
    desk = Desk().connect()
    desk.hear(POSITION[:9])
    desk.driver.lost(0, "gone")
    desk.advance(1.0)
    desk.ready()
    assert desk.state == "Idle"


def test_unsent_bytes_do_not_survive_the_connection() -> None:
    desk = Desk().ready()
    desk.move()
    desk.driver.lost(desk.now, "gone")
    assert desk.said() == ""


# ── snapshots ───────────────────────────────────────────────────────────────────────────────────


def test_after_a_restore_the_driver_reconnects_and_refuses_saved_tickets() -> None:
    desk = Desk().ready()
    first, second = desk.move(), desk.move()
    saved = msgspec.to_builtins(desk.driver.save())
    other = Desk()
    other.driver.load(msgspec.json.decode(msgspec.json.encode(saved)))
    assert other.driver.wanted() is None
    other.advance(0.0)
    restored = Refused("A real robot cannot be restored from a snapshot", code=5)
    assert other.ended == [(first, restored, 0), (second, restored, 0)]
    assert other.driver.wanted() is not None
    other.ready()
    assert other.said() == ""
    assert other.move() == second + 1


def test_a_ticket_restored_before_its_end_was_reported_ends_once() -> None:
    desk = Desk().ready()
    ticket = desk.move()
    desk.hear(b"OK Movement completed\n")
    desk.driver.load(msgspec.to_builtins(desk.driver.save()))
    desk.advance(0.0)
    desk.ready()
    assert [ended for ended, *_ in desk.ended] == [ticket]


def test_an_emergency_stop_survives_a_snapshot() -> None:
    desk = Desk()
    desk.driver.stop(desk.now)
    other = Desk()
    other.driver.load(msgspec.to_builtins(desk.driver.save()))
    other.advance(0.0)
    other.connect()
    assert other.said() == "STOP"


# ── properties ──────────────────────────────────────────────────────────────────────────────────

Deed = Callable[[DriverBench], object]
STORY: list[tuple[float, Deed]] = [
    (0.05, lambda b: b.robot.move_to(Pose(0.1, 0.2, 0.3, 0.0, 0.0, 1.0), b.now)),
    (0.20, lambda b: b.robot.move_by(0.01, 0.0, 0.0, b.now)),
    (0.60, lambda b: b.robot.stop(b.now)),
    (0.60, lambda b: b.robot.home(b.now)),
    (0.81, lambda b: b.robot.reset(b.now)),
    (0.81, lambda b: b.robot.home(b.now)),
    (1.00, lambda b: b.pull()),
    (2.50, lambda b: b.robot.home(b.now)),
    (4.00, lambda b: None),
]


def summary(bench: DriverBench) -> tuple[object, ...]:
    said = [(e.at, e.data) for e in bench.virtual_cell.transcript if e.kind != "<"]
    return bench.ended, said, bench.robot.status(bench.now)


def play(bench: DriverBench, cuts: list[float]) -> tuple[object, ...]:
    nothing: Deed = lambda b: None  # noqa: E731
    story = sorted([*STORY, *((at, nothing) for at in cuts)], key=lambda step: step[0])
    for at, deed in story:
        bench.advance(at - seconds(bench.now))
        deed(bench)
        bench.advance(0.0)
    return summary(bench)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4000).map(lambda ms: ms / 1000), max_size=20))
def test_slicing_time_differently_changes_nothing(cuts: list[float]) -> None:
    assert play(DriverBench(), cuts) == play(DriverBench(), [])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=10))
def test_packets_of_answers_change_nothing(sizes: list[int]) -> None:
    def cut(data: bytes) -> list[bytes]:
        pieces, turn = [], 0
        while data:
            size = sizes[turn % len(sizes)]
            pieces.append(data[:size])
            data, turn = data[size:], turn + 1
        return pieces

    assert play(DriverBench(cut=cut), []) == play(DriverBench(), [])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_ticket_ends_once_and_no_move_is_sent_twice(data: st.DataObject) -> None:
    bench = DriverBench(Config(command_timeout_ms=700, reconnect_s=(0.1, 0.3)))
    tickets: list[Ticket] = []

    def move() -> None:
        target = Pose((len(tickets) + 1) * MM, 0.0, 0.0, 0.0, 0.0, 0.0)
        ticket = bench.do(lambda now: bench.robot.move_to(target, now))
        if not isinstance(ticket, Refused):
            tickets.append(ticket)

    deeds: dict[str, Callable[[], object]] = {
        "move": move,
        "stop": lambda: bench.do(bench.robot.stop),
        "reset": lambda: bench.do(bench.robot.reset),
        "cut": bench.pull,
        "out of reach": lambda: setattr(bench, "reachable", not bench.reachable),
        "mute": lambda: setattr(bench, "mute", not bench.mute),
        "other stop": lambda: bench.simulated.stop(bench.now),
        "other reset": lambda: bench.simulated.reset(bench.now),
        "a bit": lambda: bench.advance(0.13),
        "a while": lambda: bench.advance(1.1),
    }
    for name in data.draw(st.lists(st.sampled_from([*deeds, "move"]), max_size=30)):
        deeds[name]()
    bench.reachable, bench.mute = True, False
    bench.advance(20.0)
    assert sorted(ticket for ticket, _, _ in bench.ended) == tickets
    assert len(set(bench.moves())) == len(bench.moves()) <= len(tickets)
    assert not bench.robot.busy()
    assert bench.robot.reading(bench.now).state == bench.simulated.status(bench.now).state


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=30), st.sampled_from([POSITION, IDLE, LOCKED]))))
def test_bytes_never_raise_and_never_move_anything(pieces: list[bytes]) -> None:
    desk = Desk().connect()
    for piece in pieces:
        if desk.driver.wanted() is not None:
            desk.hear(piece)
            desk.advance(0.05)
    assert set(desk.said().split()) <= {"GET_POS", "GET_STATUS"}


# ── numbers and answers ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (100.0, "100.00"),
        (-5.0, "-5.00"),
        (0.125, "0.125"),
        (1 / 3, "0.333333"),
        (-1e-9, "0.00"),
        (1e20, "100000000000000000000.00"),
    ],
)
def test_numbers_are_plain_decimals(value: float, text: str) -> None:
    assert decimal(value) == text


@given(st.tuples(*[st.floats(-1e5, 1e5)] * 6))
def test_a_pose_survives_the_wire(values: tuple[float, ...]) -> None:
    request = request_of("MOVE_ABS", values)
    pose = read_answer("GET_POS", b"OK " + request.removeprefix(b"MOVE_ABS ").rstrip())
    assert isinstance(pose, Pose)
    units = (MM, MM, MM, DEG, DEG, DEG)
    for read, meant, unit in zip(pose, values, units, strict=True):
        assert read / unit == pytest.approx(meant, abs=6e-7)


def test_a_condition_is_read_field_by_field() -> None:
    answer = read_answer("GET_STATUS", b"OK Homing,-3.5,6,60")
    assert answer == Condition("Homing", -3.5, 6, 60)
