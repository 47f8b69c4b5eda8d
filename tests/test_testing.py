"""The pytest plugin: robots as fixtures."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import zmq
from typer.testing import CliRunner

from understudy import VirtualController, cli
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


def test_a_test_waits_for_a_request(text_robot: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def speak() -> None:
        with socket.create_connection((text_robot.host, text_robot.port), timeout=60) as client:
            client.sendall(b"HOME\n")
            client.recv(100)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(speak)
        assert text_robot.received("HOME", within_s=60)
        done.result()
    text_robot.verify_no_unexpected()
    monkeypatch.setattr("understudy.app.stand_in.PATIENCE_SECONDS", 0.0)
    before = text_robot.now
    with pytest.raises(AssertionError, match="not 2 times"):
        text_robot.received("HOME", times=2, within_s=0.25)
    assert text_robot.now == pytest.approx(before + 0.25), "the robot's time has passed"


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
    assert mobile_robot.received("MOVE_TO_POSE", times=1) == [entry]


LINKED = "robots: {bench: {kind: text_robot, faces: {text_tcp: {}, hmi_link: {}}}}\n"


def test_commands_over_the_hmi_link_are_in_the_journal_without_secrets(tmp_path: Path) -> None:
    (tmp_path / "cell.yaml").write_text(LINKED)
    context = zmq.Context()
    with StandIn(str(tmp_path / "cell.yaml")) as cell:
        panel = context.socket(zmq.REQ)
        try:
            panel.set(zmq.LINGER, 0)
            panel.set(zmq.RCVTIMEO, 60_000)
            panel.connect(cell.endpoints["bench.hmi_link"])
            for number, command in enumerate(("now", "reset", "rte")):
                message = {"type": "COMMAND", "id": number, "payload": {"command": command}}
                panel.send(json.dumps(message | {"secret": cell.secret}).encode())
                panel.recv()
        finally:
            panel.close()
            context.term()
        (entry,) = cell.received("COMMAND", command="reset", endpoint="bench.hmi_link")
        entries = cell.journal("bench.hmi_link")
        assert entry.fields["secret"] == "..."
        assert cell.secret not in str(entries)
        cell.received("now", times=0)
        kinds = [(each.kind, each.names[0], each.refused) for each in entries if each.kind != "!"]
        assert kinds == [
            *((">", "COMMAND", False), ("<", "RESULT", False)),
            *((">", "COMMAND", False), ("<", "ERROR", True)),
        ]


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

def test_refused_at_its_turn_and_never_waited_for(robot):
    robot.send_gcode("G1 A10 Q-20 F600")

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
    ran.assert_outcomes(passed=4, failed=8)
    ran.stdout.fnmatch_lines_random(
        [
            "*GO1 A10: *G*",
            "*G1 A10 F600: *not enabled*",
            "*999*",
            "*Q-20: is not used in this line*",
            "*bench.text_tcp: GET_POSE → ERROR *",
            "*machine.grblhal: G1 X10 → error:22",
            "*kuka: *mergency stop*",
            "E *ValueError: of the test",
        ]
    )


STRICT = """
import pytest

@pytest.mark.understudy(strict=True, refusals=True)
def test_unknown(grbl_robot):
    grbl_robot.ask("G1 X10 F600")
    grbl_robot.ask("G38.9 X20 F100")

@pytest.mark.understudy(refusals=True)
def test_not_strict(grbl_robot):
    grbl_robot.ask("G38.9 X20 F100")

@pytest.mark.understudy(strict=True)
def test_known(grbl_robot, text_robot):
    grbl_robot.ask("G1 X10 F600")
    text_robot.ask("GET_POS")

@pytest.fixture(scope="session")
def line(start_cell):
    return start_cell("line.yaml")

@pytest.mark.understudy(refusals=True)
def test_of_a_strict_cell(line):
    line.ask("GET_POSE")

@pytest.mark.understudy(refusals=True, strict=False)
def test_allowed(line):
    line.ask("GET_POSE")
"""
STRICT_CELL = "strict: true\nrobots: {bench: {kind: text_robot, faces: {text_tcp: {}}}}\n"


def test_a_strict_test_fails_for_an_unknown_request(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(STRICT)
    pytester.path.joinpath("line.yaml").write_text(STRICT_CELL)
    ran = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-rA")
    ran.assert_outcomes(passed=3, failed=2)
    ran.stdout.fnmatch_lines_random(
        [
            "a strict test does not allow these requests:",
            "*machine.grblhal: G38.9 is unknown; G38.2?",
            "*bench.text_tcp: GET_POSE is unknown; GET_POS?",
            "@pytest.mark.understudy(strict=False) allows them",
        ]
    )


BROKEN = """
def test_broken(text_robot):
    text_robot.ask("MOVE_ABS 100,200,150,0,0,90")
    text_robot.forward(seconds=2)
    text_robot.inject("emergency_stop")
    assert text_robot.ask("HOME") == "OK Homing completed"

def test_fine(text_robot):
    text_robot.ask("HOME")
"""


def test_a_failed_test_shows_the_wires_and_can_be_replayed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine=BROKEN)
    ran = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--understudy-record", "kept")
    ran.assert_outcomes(passed=1, failed=1)
    (folder,) = pytester.path.joinpath("kept").iterdir()
    assert folder.name == "test_mine.py_test_broken"
    files = {file.suffix: file for file in folder.iterdir()}
    assert files.keys() == {".chat", ".json", ".txt"}
    ran.stdout.fnmatch_lines(
        [
            "cell text_robot, seed 3, rules off, rate step, 2.5 s of simulated time",
            "bench.text_tcp: all messages",
            "*0.000000 s  bench.text_tcp 1 > MOVE_ABS 100,200,150,0,0,90*",
            "*2.500000 s  bench.text_tcp 1 < ERROR Robot in emergency stop state*",
            f"replay it: understudy replay {files['.chat']}",
        ]
    )
    replay = ["replay", str(files[".chat"])]
    same = CliRunner().invoke(cli.app, [*replay, "--exact", "--time-tolerance", "0"])
    assert same.exit_code == 0, same.output
    assert "no difference" in same.output
    files[".chat"].write_text(files[".chat"].read_text().replace("ERROR Robot", "ERROR Rodot"))
    other = CliRunner().invoke(cli.app, replay)
    assert other.exit_code == 1
    assert "byte 8 (message) differs" in other.output
    with StandIn("text_robot") as robot:
        robot.do("restore", snapshot=json.loads(files[".json"].read_text()))
        assert robot.now == 2.5


def test_without_a_folder_the_transcript_is_a_temporary_file(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine=BROKEN)
    ran = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--basetemp", "base")
    ran.assert_outcomes(passed=1, failed=1)
    (chat,) = pytester.path.joinpath("base", "understudy", "test_mine.py_test_broken").iterdir()
    ran.stdout.fnmatch_lines([f"replay it: understudy replay {chat}"])


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
