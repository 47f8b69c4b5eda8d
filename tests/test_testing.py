"""The pytest plugin: robots as fixtures."""

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from understudy import VirtualController
from understudy.app.stand_in import StandIn
from understudy.robots.mobile.stand_in import MobileRobot


def test_answers_need_no_waiting(text_robot: StandIn) -> None:
    assert text_robot.ask("MOVE_ABS 100,200,150,0,0,90") == "OK Movement completed"
    assert text_robot.ask("GET_POS") == "OK 100.00,200.00,150.00,0.00,0.00,90.00"
    assert text_robot.now == 0.5


def test_time_stands_until_it_is_told_to_run(text_robot: StandIn) -> None:
    text_robot.forward(seconds=3)
    assert text_robot.now == 3.0


def test_faults_on_demand(text_robot: StandIn) -> None:
    text_robot.inject("emergency_stop")
    assert text_robot.ask("HOME") == "ERROR Robot in emergency stop state"
    with pytest.raises(RuntimeError, match="overheat"):
        text_robot.inject("overhead")


@pytest.mark.understudy(refusals=True)
def test_answers_of_several_lines_end_with_ok_or_an_error(grbl_robot: StandIn) -> None:
    assert grbl_robot.ask("G1 X10 F500") == "ok"
    assert grbl_robot.ask("G5000") == "error:20"
    grbl_robot.forward(seconds=10)
    assert grbl_robot.ask("$I").splitlines()[0].startswith("[VER:")
    assert grbl_robot.ask("$I").splitlines()[-1] == "ok"
    assert grbl_robot.ask("G1 X20") == "ok"


def test_ask_needs_a_face_of_text(kuka_robot: StandIn) -> None:
    with pytest.raises(ValueError, match="lines of text: none in this cell"):
        kuka_robot.ask("HOME")


def test_a_client_of_ones_own(text_robot: StandIn) -> None:
    with socket.create_connection((text_robot.host, text_robot.port), timeout=60) as client:
        client.sendall(b"HOME\n")
        assert client.recv(100) == b"OK Homing completed\n"


# ── what was received ──


@pytest.mark.understudy(refusals=True)
def test_a_test_asks_what_was_received(text_robot: StandIn) -> None:
    text_robot.ask("MOVE_ABS 100,200,150,0,0,90")
    text_robot.ask("MOVE_ABS 100,200")
    first, second = text_robot.received("move_abs", times=2)
    assert (first.fields["x"], first.time_s, second.fields) == (100.0, 0.0, {})
    assert text_robot.received("MOVE_ABS", rz=90) == [first]
    assert text_robot.received("STOP", times=0) == []
    with pytest.raises(AssertionError, match=r"STOP was received 0 times; .*MOVE_ABS \(2\)"):
        text_robot.received("STOP")
    with pytest.raises(AssertionError, match="MOVE_ABS 100,200 → ERROR Invalid"):
        text_robot.verify_no_unexpected()
    answers = [entry for entry in text_robot.journal() if entry.kind == "<"]
    assert [entry.refused for entry in answers] == [False, True]


def test_a_test_waits_for_a_request(text_robot: StandIn) -> None:
    def speak() -> None:
        with socket.create_connection((text_robot.host, text_robot.port), timeout=60) as client:
            client.sendall(b"HOME\n")
            client.recv(100)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(speak)
        assert text_robot.received("HOME", within_s=60)
        done.result()
    text_robot.verify_no_unexpected()
    with pytest.raises(AssertionError, match="not 2 times"):
        text_robot.received("HOME", times=2, within_s=0.01)


def test_the_journal_can_be_read_after_the_end(text_robot: StandIn) -> None:
    text_robot.ask("HOME")
    text_robot.do("quit")
    assert text_robot.received("HOME")


def test_messages_of_mobile_robots_are_found_by_their_fields(
    mobile_robot: MobileRobot,
) -> None:
    mobile_robot.command("MOVE_TO_POSE", x=1.0, y=0.0, wait=False)
    cell = mobile_robot.fleet.cell
    (entry,) = cell.received(commandType="MOVE_TO_POSE", robotId=mobile_robot.name, within_s=60)
    assert entry.names == ("command.request", "MOVE_TO_POSE")
    assert cell.received("command.request", x=1.0)


@pytest.mark.understudy(cell="text_robot", seed=3, rules=True)
def test_the_marker_chooses_cell_and_rules(cell: StandIn) -> None:
    answers = {cell.ask("HOME") for _ in range(100)}
    assert answers == {"OK Homing completed", "ERROR Communication timeout"}


def test_a_cell_that_cannot_be_says_why() -> None:
    with pytest.raises(Exception, match="did you mean 'text_robot'"), StandIn("text_robt"):
        pass


def test_a_cell_may_end_before_its_test_does(text_robot: StandIn) -> None:
    text_robot.do("quit")


def test_an_arm_in_the_hand(robot: VirtualController) -> None:
    assert robot.send_gcode("G1 A45 F6000") is None
    robot.run_until_idle()
    assert robot.joint_state().positions[0] == pytest.approx(0.7853981633974483)
    assert robot.joint_state().positions_deg[0] == pytest.approx(45.0)


def test_an_empty_kernel_cache_is_filled_with_progress_on_the_terminal(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(
        """
        from understudy.app import kernels

        kernels.missing = lambda names: tuple(names)
        kernels._compiled_by_workers = lambda names: iter(names)
        kernels.LINE_SECONDS = 0.0
        """
    )
    pytester.makepyfile(
        """
        def test_one(robot):
            pass

        def test_two(kuka_robot):
            pass

        def test_three(text_robot):
            pass
        """
    )
    ran = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-v")
    ran.assert_outcomes(passed=3)
    ran.stderr.fnmatch_lines(["compiling kernels: 0 of*", "compiling kernels: 2 of*"])
    assert ran.stderr.str().count("compiling kernels: 0 of") == 2, "a text robot needs none"


def test_a_wrong_keyword_of_the_marker_is_a_usage_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.understudy(cel="text_robot")
        def test_one(cell):
            pass

        @pytest.mark.understudy("text_robot")
        def test_two(cell):
            pass
        """
    )
    ran = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    said = ran.stdout.str()
    allowed = "is not understood; allowed are the keywords cell, seed, rules, rate, hmi, files, "
    assert f"@pytest.mark.understudy: cel {allowed}" in said
    assert f"@pytest.mark.understudy: 'text_robot' {allowed}" in said
    assert "TypeError" not in said


REFUSED = """
import pytest

def test_misspelt(robot):
    robot.send_gcode("GO1 A10")

def test_refused(robot):
    robot.disable()
    robot.send_gcode("G1 A10 F600")

def test_unreachable(robot):
    robot.send_gcode("G1 A999 F600")
    robot.run_until_idle()

def test_after_another_problem(robot):
    robot.send_gcode("GO1 A10")
    raise ValueError("of the test")

@pytest.mark.understudy(refusals=True)
def test_expected(robot):
    robot.send_gcode("GO1 A10")

def test_text(text_robot):
    text_robot.ask("GET_POSE")

def test_grbl(grbl_robot):
    grbl_robot.ask("G1 X10")

def test_kuka(kuka_robot):
    kuka_robot.do("emergency_stop", robot="kuka")

@pytest.mark.understudy(refusals=True)
def test_expected_answer(text_robot):
    assert text_robot.ask("GET_POSE").startswith("ERROR")

def test_injected(text_robot):
    text_robot.inject("emergency_stop")
    text_robot.ask("HOME")

def test_nothing_refused(robot, text_robot, grbl_robot, kuka_robot):
    robot.send_gcode("G1 A10 F600")
    robot.run_until_idle()
    text_robot.ask("GET_POS")
    grbl_robot.ask("G1 X10 F600")
"""


def test_a_refused_line_fails_a_test_that_does_not_expect_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(REFUSED)
    ran = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-rA")
    ran.assert_outcomes(passed=4, failed=7)
    ran.stdout.fnmatch_lines_random(
        [
            "*GO1 A10: *G*",
            "*G1 A10 F600: *not enabled*",
            "*999*",
            "*bench.text_tcp: GET_POSE → ERROR *",
            "*machine.grblhal: G1 X10 → error:22",
            "*kuka: *mergency stop*",
            "E *ValueError: of the test",
        ]
    )


@pytest.mark.understudy(cell="kuka_eki", rate=0, hmi=True, seed=3)
def test_every_keyword_of_the_marker_acts(cell: StandIn, tmp_path: Path) -> None:
    assert cell.do("now")["rate"] == 0
    assert "state" in cell.endpoints
    assert cell.do("status")["cell"] == "kuka_eki"


@pytest.mark.understudy(cell="pick_place")
def test_the_arm_of_another_cell(robot: VirtualController) -> None:
    assert robot.send_gcode("G1 A10 F6000") is None
    robot.run_until_idle()
    assert robot.joint_state().positions_deg[0] == pytest.approx(10.0)


STARTED = """
import pytest

@pytest.fixture(scope="session")
def line(start_cell):
    return start_cell("text_robot", seed=7)

@pytest.fixture(scope="session")
def small(start_fleet):
    return start_fleet(robots=2, rate="step")

def test_one(line, small):
    line.forward(seconds=2)
    assert small.robots == ("robot-1", "robot-2")

def test_two(line, small):
    assert line.now == 2.0

def test_refused(line):
    line.ask("GET_POSE")

def test_not_that_of_the_test_before(line):
    line.ask("GET_POS")
"""


def test_cells_of_a_session(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(STARTED)
    ran = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    ran.assert_outcomes(passed=3, failed=1)
    ran.stdout.fnmatch_lines(["FAILED *test_refused*"])
