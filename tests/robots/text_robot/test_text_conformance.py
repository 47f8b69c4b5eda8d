"""Contract of the text robot, simulated or real."""

import pytest
from tests.robots.text_robot.driver_bench import DriverBench, RobotBench

from understudy.errors import Refused
from understudy.ports import UNLIMITED, Ticket
from understudy.robots.text_robot.face import TextTcpFace
from understudy.simulation import scenario
from understudy.space.pose import Pose
from understudy.units import DEG, MM, nanoseconds, seconds

Bench = RobotBench | DriverBench

STOPPED = Refused("Robot in emergency stop state", code=4)
THERE = Pose(100 * MM, -20 * MM, 150 * MM, 0.0, 0.0, 90 * DEG)
HERE = Pose(0.0, 0.0, 100 * MM, 0.0, 0.0, 0.0)


@pytest.fixture(params=[RobotBench, DriverBench], ids=["simulated", "real"])
def bench(request: pytest.FixtureRequest) -> Bench:
    made: Bench = request.param()
    return made


def summary(bench: Bench) -> tuple[str, int, int]:
    reading = bench.robot.reading(bench.now)
    return reading.state, reading.error_code, reading.load_percent


def ended(bench: Bench) -> list[tuple[int, Refused | None, float]]:
    return [(ticket, outcome, seconds(at)) for ticket, outcome, at in bench.ended]


def assert_at(bench: Bench, pose: Pose) -> None:
    """Within the two decimals of the wire."""
    for value, expected in zip(bench.robot.reading(bench.now).pose, pose, strict=True):
        assert value == pytest.approx(expected, abs=0.0051 * DEG)


class TestConformance:
    def test_it_rests_at_its_start_pose(self, bench: Bench) -> None:
        assert summary(bench) == ("Idle", 0, 10)
        assert bench.robot.stopped() is None
        assert not bench.robot.busy()
        assert_at(bench, HERE)

    def test_it_moves_to_a_pose(self, bench: Bench) -> None:
        ticket = bench.do(lambda now: bench.robot.move_to(THERE, now))
        assert bench.robot.busy()
        bench.advance(0.4999)
        assert not bench.ended
        bench.advance(0.0001)
        assert ended(bench) == [(ticket, None, 0.5)]
        assert not bench.robot.busy()
        assert summary(bench) == ("Idle", 0, 10)
        assert_at(bench, THERE)

    def test_a_listener_finds_the_robot_at_its_target(self, bench: Bench) -> None:
        bench.robot.on_finished(lambda *_: assert_at(bench, THERE))
        bench.do(lambda now: bench.robot.move_to(THERE, now))
        bench.advance(0.5)
        assert len(bench.ended) == 1

    def test_a_face_gives_the_same_answers(self, bench: Bench) -> None:
        face = TextTcpFace("front", bench.robot, scenario.build(scenario.Config(), 1))
        client = face.open("1", bench.now)
        client.receive(b"MOVE_ABS 1,2,3,0,0,0\nGET_POS\nMOVE_REL 1\nHOME\n", bench.now)
        bench.advance(1.0)
        assert client.owed()
        client.receive(b"STOP\nMOVE_REL 1,1,1\n", bench.now)
        bench.advance(0.1)
        client.receive(b"GET_STATUS\nRESET\nMOVE_REL 0,0,1\n", bench.now)
        bench.advance(0.2)
        answers = b"".join(iter(lambda: client.take(UNLIMITED), b"")).decode()
        assert answers.splitlines() == [
            "OK Movement completed",
            "OK 1.00,2.00,3.00,0.00,0.00,0.00",
            "ERROR Invalid parameters (expected: dx,dy,dz)",
            "ERROR Robot in emergency stop state",
            "OK Emergency stop executed",
            "ERROR Robot in emergency stop state",
            "OK EmergencyStopped,26.1,4,0",
            "OK Error reset",
            "OK Movement completed",
        ]

    def test_it_moves_by_a_distance(self, bench: Bench) -> None:
        ticket = bench.do(lambda now: bench.robot.move_by(1 * MM, -2 * MM, 3 * MM, now))
        bench.advance(0.2)
        assert ended(bench) == [(ticket, None, 0.2)]
        assert_at(bench, Pose(1 * MM, -2 * MM, 103 * MM, 0.0, 0.0, 0.0))

    def test_it_homes(self, bench: Bench) -> None:
        bench.do(lambda now: bench.robot.move_to(THERE, now))
        bench.advance(1.0)
        ticket = bench.do(bench.robot.home)
        bench.advance(1.0)
        assert ended(bench)[1:] == [(ticket, None, 2.0)]
        assert_at(bench, HERE)

    def test_two_moves_run_one_after_the_other(self, bench: Bench) -> None:
        first = bench.do(lambda now: bench.robot.move_to(THERE, now))
        second = bench.do(lambda now: bench.robot.move_by(0.0, 20 * MM, 0.0, now))
        assert first != second
        bench.advance(0.5)
        assert bench.robot.busy()
        bench.advance(0.5)
        assert ended(bench) == [(first, None, 0.5), (second, None, 0.7)]
        assert_at(bench, THERE._replace(y=0.0))

    def test_stop_refuses_running_and_waiting_moves_before_it_returns(self, bench: Bench) -> None:
        tickets = [bench.do(lambda now: bench.robot.move_to(THERE, now)) for _ in range(3)]
        bench.advance(0.25)
        bench.robot.stop(bench.now)
        assert ended(bench) == [(ticket, STOPPED, 0.25) for ticket in tickets]
        assert not bench.robot.busy()
        assert bench.robot.stopped() == STOPPED
        bench.advance(1.0)
        assert len(bench.ended) == len(tickets)
        assert summary(bench) == ("EmergencyStopped", 4, 0)
        assert_at(bench, Pose(50 * MM, -10 * MM, 125 * MM, 0.0, 0.0, 45 * DEG))

    def test_nothing_is_accepted_in_emergency_stop(self, bench: Bench) -> None:
        bench.do(bench.robot.stop)
        assert summary(bench) == ("EmergencyStopped", 0, 0)
        assert bench.do(lambda now: bench.robot.move_to(THERE, now)) == STOPPED
        assert bench.do(lambda now: bench.robot.move_by(1.0, 0.0, 0.0, now)) == STOPPED
        assert bench.do(bench.robot.home) == STOPPED
        assert summary(bench) == ("EmergencyStopped", 4, 0)
        assert not bench.ended

    def test_reset_lets_it_move_again_at_once(self, bench: Bench) -> None:
        bench.robot.stop(bench.now)
        assert bench.robot.move_to(THERE, bench.now) == STOPPED
        bench.robot.reset(bench.now)
        ticket = bench.do(lambda now: bench.robot.move_to(THERE, now))
        assert not isinstance(ticket, Refused)
        bench.advance(0.5)
        assert ended(bench) == [(ticket, None, 0.5)]
        assert summary(bench) == ("Idle", 0, 10)

    def test_stop_after_reset_counts(self, bench: Bench) -> None:
        for deed in (bench.robot.stop, bench.robot.reset, bench.robot.stop):
            deed(bench.now)
        assert bench.robot.stopped() == STOPPED
        bench.advance(1.0)
        assert bench.robot.stopped() == STOPPED
        assert summary(bench)[0] == "EmergencyStopped"

    def test_a_noted_error_is_kept_until_reset(self, bench: Bench) -> None:
        bench.robot.note_error(3)
        bench.advance(1.0)
        assert summary(bench) == ("Idle", 3, 10)
        bench.do(bench.robot.reset)
        assert summary(bench) == ("Idle", 0, 10)

    def test_a_listener_may_submit_the_next_move(self, bench: Bench) -> None:
        """A program that submits its next move when the last one ends."""
        rest = [THERE, HERE]

        def go_on(ticket: Ticket, outcome: Refused | None, now: int) -> None:
            bench.robot.move_to(rest.pop(), now)

        bench.robot.on_finished(go_on)
        bench.do(bench.robot.home)
        bench.advance(1.9)
        assert [at for *_, at in bench.ended] == [nanoseconds(1.0), nanoseconds(1.5)]
        assert not rest
        assert bench.robot.busy()
