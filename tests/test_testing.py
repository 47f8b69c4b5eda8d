"""The pytest plugin: robots as fixtures."""

import socket

import pytest

from understudy import VirtualController
from understudy.app.stand_in import StandIn


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


def test_an_empty_kernel_cache_is_filled_with_progress_on_the_terminal(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(
        """
        from understudy.app import kernels

        def fill_cache(progress):
            progress(1, 2)
            return 0.1

        kernels.is_warm = lambda: False
        kernels.fill_cache = fill_cache
        kernels.LINE_SECONDS = 0.0
        """
    )
    pytester.makepyfile(
        """
        def test_one(robot):
            pass

        def test_two(robot):
            pass
        """
    )
    ran = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    ran.assert_outcomes(passed=2)
    ran.stderr.fnmatch_lines(["understudy: the kernel cache is empty*", "compiling kernels: 1 of*"])
    assert ran.stderr.str().count("cache is empty") == 1


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
    allowed = "is not understood; allowed are the keywords cell, seed, rules, rate, hmi, files"
    assert f"@pytest.mark.understudy: cel {allowed}" in said
    assert f"@pytest.mark.understudy: 'text_robot' {allowed}" in said
    assert "TypeError" not in said
