"""`understudy run --program FILE --exit`: a program without the page, at any rate; and `--real`."""

import errno
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from understudy.cli import app
from understudy.errors import ConfigError

SWING = "G90 G21\nG1 A5 F6000\nG1 A0\n"
WELD = ["g60_welding", "--ephemeral", "--no-hmi"]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "swing.gcode"
    file.write_text(SWING)
    return file


def run(*words: object) -> Result:
    done = CliRunner().invoke(app, ["run", *map(str, words)])
    if isinstance(done.exception, ConfigError):
        raise done.exception
    return done


@pytest.mark.parametrize("rate", ["max", "step", "20"])
def test_a_finished_program_exits_with_0_and_takes_the_same_time_at_every_rate(
    program: Path, rate: str
) -> None:
    done = run(*WELD, "--program", program, "--exit", "--rate", rate)
    assert done.exit_code == 0, done.output
    assert "swing.gcode: done in 0.401 s" in done.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("G1 A5 F6000\n\nG1 A400\n", "(line 3: G1 A400)"),
        ("G1 A5 F6000\nG1 A\n", "line 2, column"),
        ("M66 P9 L3 Q0.1\nM3\nG1 A1 F60\n", "gas"),
        ("\n", "no program is loaded"),
    ],
    ids=["out of reach", "not readable", "arc without gas", "empty"],
)
def test_a_failed_program_exits_with_1_and_names_the_line(
    program: Path, text: str, says: str
) -> None:
    program.write_text(text)
    done = run(*WELD, "--program", program, "--exit", "--rate", "max")
    assert done.exit_code == 1
    assert says in done.stderr


def test_a_program_that_is_not_finished_after_for_seconds_has_failed(program: Path) -> None:
    program.write_text("G4 P60\n")
    done = run(*WELD, "--program", program, "--exit", "--rate", "max", "--for", "1")
    assert done.exit_code == 1


def test_output_that_cannot_be_written_ends_the_command(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task of the program must not leave the cell running, nor hide the problem."""

    def full(robot: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("understudy.cli.run._outcome", full)
    done = run(*WELD, "--program", program, "--exit", "--rate", "max", "--for", "60")
    assert isinstance(done.exception, OSError)


def test_without_exit_the_cell_runs_on(program: Path) -> None:
    done = run(*WELD, "--program", program, "--rate", "max", "--for", "2")
    assert done.exit_code == 0
    assert "done in" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--exit"], "--program FILE --exit"),
        (["--program", "nowhere.gcode"], "nowhere.gcode"),
        (["--program", "{program}", "--robot", "g6"], "did you mean 'g60'?"),
    ],
)
def test_usage_errors(program: Path, words: list[str], says: str) -> None:
    with pytest.raises(ConfigError) as problem:
        run(*WELD, *(word.format(program=program) for word in words))
    assert says in str(problem.value)


def test_a_cell_without_a_robot_for_programs_is_an_error(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("understudy.robots.text_robot.program_run")
    with pytest.raises(ConfigError, match="no robot of the cell text_robot runs programs"):
        run("text_robot", "--ephemeral", "--no-hmi", "--program", program)


@pytest.mark.parametrize(
    ("cell", "text", "refused"),
    [
        ("kuka_eki", "G1 X20 F50\nG1 X0\n", "G1 X9000 F50\n"),
        ("grblhal_6axis", "G21 G90\nG1 X-5 F600\nG1 X0\n", "G21\nG1 X5\n"),
        ("text_robot", "MOVE_REL 0,0,10\nHOME\n", "HOME\nMOVE_ABS 1e305,0,0,0,0,0\n"),
    ],
)
def test_every_robot_runs_a_program(tmp_path: Path, cell: str, text: str, refused: str) -> None:
    program = tmp_path / "part.txt"
    program.write_text(text)
    headless = (cell, "--ephemeral", "--no-hmi", "--rate", "max", "--exit", "--program", program)
    done = run(*headless)
    assert (done.exit_code, "part.txt: done in" in done.stdout) == (0, True), done.output
    program.write_text(refused)
    done = run(*headless)
    assert done.exit_code == 1
    assert f"line {len(refused.splitlines())}" in done.stderr


def test_a_real_controller_is_never_used_without_real(tmp_path: Path) -> None:
    cell = tmp_path / "real.yaml"
    text = "controller: real\nrobots:\n  b: {kind: text_robot, real: {to: 'tcp://127.0.0.1:1'}}\n"
    cell.write_text(text)
    with pytest.raises(ConfigError, match="--real on the command line"):
        run(cell, "--ephemeral", "--for", "0")
    cell.write_text(text.replace("controller: real", "controller: auto"))
    assert run(cell, "--ephemeral", "--no-hmi", "--for", "0").exit_code == 0
