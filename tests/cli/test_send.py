"""`understudy send`: programs of every dialect, to virtual robots on their sockets."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.app.stand_in import StandIn
from understudy.cli import app

PTY = "robots: {machine: {kind: machine, faces: {grblhal: {pty: true}}}}\n"
ARM = "robots: {g60: {kind: arm, faces: {grblhal: {port: 0}}}}\n"


def send(folder: Path, dialect: str, text: str, to: str, *more: str) -> tuple[int, str]:
    (folder / "part.nc").write_text(text)
    command = ["send", dialect, str(folder / "part.nc"), "--to", to, *more]
    result = CliRunner().invoke(app, command)
    return result.exit_code, result.output.replace("\n", " ")


def address(robot: StandIn) -> str:
    return f"{robot.host}:{robot.port}"


def report(robot: StandIn) -> str:
    """The status report to a client that connects afterwards."""
    return next(line for line in robot.ask("?").splitlines() if line.startswith("<"))


@pytest.mark.understudy(rate="max")
class TestGrblHal:
    def test_a_program_is_sent_to_its_end(self, grbl_robot: StandIn, tmp_path: Path) -> None:
        program = "G21 G90\n(a remark)\n\nG0 X10\nG1 Y20 F3000 ; there\nG4 P0.5\nM2\n"
        code, output = send(tmp_path, "grblhal", program, address(grbl_robot))
        assert code == 0, output
        assert "done" in output
        assert "7/7" in output
        assert report(grbl_robot).startswith("<Idle|MPos:10.000,20.000,0.000")

    def test_comments_may_have_any_encoding(self, grbl_robot: StandIn, tmp_path: Path) -> None:
        """As in `validate` and `run --program`: some programs are in Latin-1."""
        (tmp_path / "alt.nc").write_bytes("G0 X10 (Fräser)\n; Öl\nM2\n".encode("latin-1"))
        words = ["send", "grblhal", str(tmp_path / "alt.nc"), "--to", address(grbl_robot)]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output

    def test_a_line_that_cannot_be_read_exits_with_1(
        self, grbl_robot: StandIn, tmp_path: Path
    ) -> None:
        code, output = send(tmp_path, "grblhal", "G0 X1\nG1 Xa\n", address(grbl_robot))
        assert code == 1
        assert ": line 2, column 4: X: X needs a number" in output
        assert output.count("line 2") == 1

    @pytest.mark.understudy(refusals=True)
    def test_a_refused_line_exits_with_1(self, grbl_robot: StandIn, tmp_path: Path) -> None:
        code, output = send(tmp_path, "grblhal", "G0 X1\nM64 P99\nG0 X2\n", address(grbl_robot))
        assert code == 1
        assert "line 2: error:39 (N2M64 P99)" in output

    @pytest.mark.understudy(refusals=True)
    def test_an_alarm_exits_with_1(self, grbl_robot: StandIn, tmp_path: Path) -> None:
        code, output = send(tmp_path, "grblhal", "G38.2 X5 F100\nG0 X9\n", address(grbl_robot))
        assert code == 1
        assert "line 1: ALARM:5" in output

    def test_a_controller_in_alarm_stays_in_it(self, grbl_robot: StandIn, tmp_path: Path) -> None:
        send(tmp_path, "grblhal", "G38.2 X5 F100\n", address(grbl_robot))
        code, output = send(tmp_path, "grblhal", "G0 X1\n", address(grbl_robot))
        assert code == 1
        assert "ALARM:5" in output

    def test_a_program_is_sent_over_a_terminal(self, tmp_path: Path) -> None:
        (tmp_path / "cell.yaml").write_text(PTY)
        with StandIn(str(tmp_path / "cell.yaml"), rate="max") as robot:
            place = robot.endpoints["machine.grblhal"].removeprefix("pty:")
            code, output = send(tmp_path, "grblhal", "G0 X10\nG1 Y5 F600\n", place)
            assert (code, "done" in output) == (0, True), output

    def test_a_program_in_the_dialect_of_the_arm(self, tmp_path: Path) -> None:
        (tmp_path / "cell.yaml").write_text(ARM)
        with StandIn(str(tmp_path / "cell.yaml"), rate="max") as robot:
            program = "G0 A10 B-20 C30 V40\nG91\nG1 X0 Y20 Z-10 F3000\n"
            words = ("--dialect", "arm", "--cell", "default")
            code, output = send(tmp_path, "grblhal", program, address(robot), *words)
            assert code == 0, output
            program = "G1 X5000 Y0 Z0 F600\n"
            code, output = send(tmp_path, "grblhal", program, address(robot), *words)
            assert code == 1
            assert "line 1" in output

    def test_an_unreachable_address_exits_with_1(self, tmp_path: Path) -> None:
        code, output = send(tmp_path, "grblhal", "G0 X1\n", "127.0.0.1:1")
        assert (code, "cannot be reached" in output) == (1, True)
        code, output = send(tmp_path, "grblhal", "G0 X1\n", str(tmp_path / "no_such_device"))
        assert (code, "cannot be opened" in output) == (1, True)


@pytest.mark.understudy(rate="max")
class TestText:
    def test_a_program_is_sent_to_its_end(self, text_robot: StandIn, tmp_path: Path) -> None:
        program = "MOVE_ABS 100,0,150,0,0,90  # over there\n\nmove_rel 0,0,-20\nHOME\n"
        code, output = send(tmp_path, "text", program, address(text_robot))
        assert (code, "3/3" in output) == (0, True), output

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ("MOVE_ABS 1,2", "line 2: MOVE_ABS takes x,y,z,rx,ry,rz, not '1,2'"),
            ("STOP", "line 2: STOP is not a move; allowed: MOVE_ABS, MOVE_REL, HOME"),
            ("HOME 1", "line 2: HOME takes no parameters"),
        ],
    )
    def test_a_wrong_line_exits_with_1(
        self, text_robot: StandIn, tmp_path: Path, line: str, problem: str
    ) -> None:
        code, output = send(tmp_path, "text", f"HOME\n{line}\n", address(text_robot))
        assert (code, problem in output) == (1, True), output

    def test_a_refused_move_exits_with_1(self, text_robot: StandIn, tmp_path: Path) -> None:
        text_robot.inject("emergency_stop")
        code, output = send(tmp_path, "text", "HOME\n", address(text_robot))
        assert (code, "Robot in emergency stop state" in output) == (1, True), output


@pytest.mark.parametrize(
    "words",
    [
        ("grblhal", "--to", "nowhere"),
        ("grblhal", "--to", "/dev/ttyACM0@fast"),
        ("grblhal", "--to", ":0"),
        ("nobody", "--to", "127.0.0.1:1"),
        ("grblhal", "--to", "127.0.0.1:1", "--dialect", "latin"),
        ("grblhal", "--to", "127.0.0.1:1", "--dialect", "arm", "--cell", "no_such_cell"),
    ],
)
def test_usage_errors(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "part.nc").write_text("G0 X1\n")
    result = CliRunner().invoke(app, ["send", words[0], str(tmp_path / "part.nc"), *words[1:]])
    assert result.exit_code != 0
    assert type(result.exception).__name__ == "ConfigError", result.output
