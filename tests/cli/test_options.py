"""The options of all commands: one name, one meaning; completion and typing mistakes."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from understudy import cli
from understudy.cli import load
from understudy.cli import run as run_command
from understudy.cli.options import with_values
from understudy.errors import ConfigError
from understudy.registry import cli_rows
from understudy.wire.connection import Event

PATIENCE_SECONDS = 90.0
COUPON = Path(__file__).parents[1] / "offline" / "validate" / "programs"
SOUND, FLAWED = COUPON / "sound" / "rapids.gcode", COUPON / "flawed" / "wrong_height.gcode"


def commands() -> Iterator[tuple[str, Any]]:
    """All commands, those of groups by two words."""
    for name in cli_rows():
        command = load(name)
        if hasattr(command, "commands"):
            yield from ((f"{name} {each}", found) for each, found in command.commands.items())
        else:
            yield name, command


COMMANDS = dict(commands())


def options_of(name: str) -> Mapping[str, Any]:
    """The options of a command by all their names."""
    params = COMMANDS[name].params
    options = [each for each in params if each.param_type_name == "option"]
    return {n: each for each in options for n in (*each.opts, *each.secondary_opts)}


def called(*words: object) -> tuple[int, str, str]:
    """Exit code, output and errors of a command in this process."""
    done = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, [str(word) for word in words])
    problem = done.exception
    if isinstance(problem, ConfigError):
        return 2, done.stdout, str(problem)
    if problem is not None and not isinstance(problem, SystemExit):
        raise problem
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


# ── one meaning ──


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_quiet_and_verbose_by_one_letter(name: str) -> None:
    code, shown, _ = called(*name.split(), "-h")
    assert code == 0
    assert "Usage: " in shown
    assert {"-q", "--quiet", "-v", "--verbose"} <= set(options_of(name))


SHARED = {
    "--cell": "CELL",
    "--running": "NAME",
    "--json": "[FILE]",
    "--html": "FILE",
    "--ready-file": None,
    "--robot": "NAME",
}


@pytest.mark.parametrize(("option", "metavar"), SHARED.items())
def test_an_option_means_the_same_in_every_command(option: str, metavar: str | None) -> None:
    others = {"new": ("--robot",)}  # the model of an arm, for the cell that is written
    found = {
        name: options_of(name)[option]
        for name in COMMANDS
        if option in options_of(name) and option not in others.get(name, ())
    }
    assert len(found) >= 4
    if metavar is not None:
        assert {name for name, each in found.items() if each.metavar != metavar} == set()
    if option in ("--running", "--json", "--html"):
        texts = {each.help.partition(";")[0] for each in found.values()}
        assert len(texts) == 1


def test_whatever_talks_to_a_running_cell_finds_it_in_the_same_way() -> None:
    with_running = {name for name in COMMANDS if "--running" in options_of(name)}
    assert all("--ready-file" in options_of(name) for name in with_running)
    # they write a ready file
    others = {"run", "demo", "vision", "log fork", "open", "course"}
    with_ready = {name for name in COMMANDS if "--ready-file" in options_of(name)}
    assert with_ready - others == with_running
    assert {
        "status",
        "stop",
        "ctl",
        "project",
        "send",
        "fleet send",
        "pick-place run",
    } <= with_running


def test_whatever_reads_cell_files_finds_ros_packages() -> None:
    reads = {
        name for name in COMMANDS if any(each.name == "cell" for each in COMMANDS[name].params)
    }
    assert {"run", "validate", "pick-place run", "calibrate hand-eye", "check"} <= reads
    assert {name for name in reads if "--package-path" not in options_of(name)} == set()


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (["p.nc", "--json"], ["p.nc", "--json="]),
        (["--json", "p.nc"], ["--json=", "p.nc"]),
        (["--json", "c1"], ["--json=", "c1"]),
        (["--json", "my.yaml"], ["--json=", "my.yaml"]),
        (["--json", "r.json"], ["--json", "r.json"]),
        (["--json", "/dev/null"], ["--json", "/dev/null"]),
        (["--json", "-"], ["--json", "-"]),
        (["--json", "-q"], ["--json=", "-q"]),
        (["--json=report"], ["--json=report"]),
        (["--", "--json", "x"], ["--", "--json", "x"]),
    ],
)
def test_the_file_of_json_is_optional(words: list[str], read: list[str]) -> None:
    assert with_values(words) == read


def test_a_file_of_json_needs_no_ending_behind_the_program() -> None:
    words = ["p.nc", "--json", "report"]
    assert with_values(words, command="validate") == words
    assert with_values(words, command="campaign") == words
    assert with_values(words, command="status") == ["p.nc", "--json=", "report"]
    assert with_values(["--json", "joint_tour"], command="validate") == ["--json=", "joint_tour"]
    assert with_values(["a.nc", "--json", "b.nc"], command="validate") == [
        "a.nc",
        "--json=",
        "b.nc",
    ]


def test_every_command_has_json() -> None:
    without = {name for name in COMMANDS if "--json" not in options_of(name)}
    assert without == {"mcp"}  # it speaks JSON only


def test_commands_that_write_files_name_them_as_json(tmp_path: Path) -> None:
    for words, file in (
        (("new", "my_cell", "--json"), "my_cell.yaml"),
        (("new", "tested", "--for", "text", "--json"), "tested/test_cell.py"),
        (("fleet", "schema", "schemas", "--json"), "schemas/asyncapi.json"),
    ):
        code, shown, said = called(*words)
        assert (code, said) == (0, "")
        files = json.loads(shown)["files"]
        assert file in files
        assert all((tmp_path / each).is_file() for each in files)


def test_a_cell_prints_its_addresses_as_json_and_text_beside_them() -> None:
    words = ["run", "text_robot", "--json", "--ephemeral", "--no-hmi", "--rate=max", "--for=1"]
    done = subprocess.run(
        [sys.executable, "-m", "understudy", *words],
        capture_output=True, text=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (ready,) = map(json.loads, done.stdout.splitlines())
    assert (ready["cell"], ready["starting"]) == ("text_robot", [])
    assert ready["endpoints"]["bench.text_tcp"].startswith("tcp://")
    assert "secret" not in ready
    assert "listens on" in done.stderr


def test_json_is_printed_or_written() -> None:
    code, shown, _ = called("faces", "--json")
    assert (code, json.loads(shown)[0]["face"]) == (0, "camera")
    code, shown, _ = called("faces", "--json", "faces.json")
    assert "what it speaks" in shown, "the text is printed beside the file"
    assert json.loads(Path("faces.json").read_text())[0]["face"] == "camera"
    code, _, said = called("faces", "--json", "no/such/folder.json")
    assert (code, "cannot be written" in said) == (2, True)


def test_validate_prints_json_without_a_file() -> None:
    code, shown, said = called("validate", SOUND, "--cell", "g60_welding", "--json")
    assert (code, json.loads(shown)["verdict"]) == (0, "pass")
    assert "pass" in said, "the text is on stderr"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["vaildate"], "did you mean 'validate'?"),
        (["my_cell.yaml"], "did you mean 'understudy run my_cell.yaml'?"),
        (["fleet", "sned", "robot-1"], "did you mean 'send'?"),
        (["run", "--ephermal"], "did you mean '--ephemeral'?"),
        (["fleet", "watch", "--onec"], "did you mean '--once'?"),
        (["run", "--cell", "g60_welding"], "the cell without an option: understudy run CELL"),
        (["ctl", "now", "--cell", "g60_welding"], "--running NAME, for a cell that runs"),
        (
            ["validate", "x.nc", "--running", "a"],
            "--cell CELL, a cell file or the name of a shipped",
        ),
        (
            ["run", "weld.gcode"],
            "`understudy validate weld.gcode`, or `understudy run CELL --program",
        ),
        (["validate", "x.nc", "--cell", "weld.nc"], "this is a program, not a cell"),
        (["run", "weld.src"], "this is a program, not a cell (got 'weld.src')"),
        (["reach", "g60_welding"], "did you mean '--cell g60_welding'?"),
        (["fleet", "watch", "c2"], "did you mean '--running c2'?"),
        (["doctor", "all"], "understudy doctor takes no such argument (got 'all')"),
        (["run", "joint_tour"], "this is a program, not a cell (got 'joint_tour')"),
        (["run", "-q", "-v"], "give -q or -v, not both"),
        (["run", "--no-hmi", "--open"], "--open shows the page, and --no-hmi starts none"),
    ],
)
def test_a_mistake_is_answered_with_what_was_probably_meant(words: list[str], says: str) -> None:
    code, _, said = called(*words)
    assert (code, says in said) == (2, True), said


def test_a_cell_without_its_ending_is_recognised() -> None:
    Path("c1.yaml").write_text("robots: {b: {kind: text_robot}}\n")
    for words in (("run", "c1"), ("check", "c1"), ("validate", "--cell", "c1")):
        code, _, said = called(*words)
        assert (code, "did you mean 'c1.yaml'?" in said) == (2, True)


def test_a_value_that_looks_like_an_option_is_none() -> None:
    code, _, said = called("ctl", "advance", "seconds=3", "--", "--frobnicate")
    assert code == 2, "what follows -- is an argument, here a wrong one"
    assert "not a parameter (got '--frobnicate')" in said


def test_a_resolution_that_gives_too_many_points_is_explained() -> None:
    code, _, said = called("reach", "--cell", "g60_welding", "--resolution-mm", "10")
    assert code == 2
    assert "41,781,923 points are too many" in said
    assert "allowed: 12.9 and more for g60" in said


# ── quiet and verbose ──


def test_quiet_leaves_out_notes_and_verbose_adds_lines() -> None:
    shown = {
        option: called("validate", FLAWED, "--cell", "g60_welding", *option.split())
        for option in ("", "-q", "-v")
    }
    assert {code for code, _, _ in shown.values()} == {1}
    usual, quiet, verbose = (text for _, text, _ in shown.values())
    assert all("torch.nozzle touches fixture" in text for text in (usual, quiet, verbose))
    assert ("not compared" in usual, "not compared" in quiet) == (True, False)
    assert len(quiet) < len(usual) < len(verbose)
    assert "G1 Z320 F3000" in verbose
    assert "G1 Z320 F3000" not in usual


def test_a_quiet_cell_prints_nothing() -> None:
    words = ["run", "text_robot", "--ephemeral", "--for", "0.1", "--rate", "max", "--no-hmi", "-q"]
    command = [sys.executable, "-m", "understudy", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_verbose_cell_prints_what_passes_its_wires(capsys: pytest.CaptureFixture[str]) -> None:
    called("faces", "-v")
    note = run_command._notes(None)
    assert note is not None
    note(Event(0, "bench.text_tcp", "1", ">", b"HOME\n"))
    assert "> HOME" in capsys.readouterr().err
    called("faces")
    assert run_command._notes(None) is None


# ── what a shell completes ──


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("understudy va", ["validate"]),
        ("understudy run g6", ["g60_welding"]),
        ("understudy run my", ["my_cell.yaml"]),
        ("understudy fleet w", ["watch"]),
        ("understudy validate p.nc --cell default --robot k", ["kuka"]),
        ("understudy record --face text", ["text_tcp"]),
        ("understudy run --eph", ["--ephemeral"]),
        ("understudy frobnicate x", []),
    ],
)
def test_a_shell_completes_commands_options_and_names(line: str, offered: list[str]) -> None:
    Path("my_cell.yaml").write_text("robots: {}\n")
    script = "import sys; sys.argv[0] = 'understudy'; from understudy.__main__ import main; main()"
    words = line.split(" ")
    env = {"_UNDERSTUDY_COMPLETE": "complete_bash", "COMP_WORDS": line}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env={**os.environ, **env, "COMP_CWORD": str(len(words) - 1)},
    )
    assert (done.stdout.split(), done.stderr) == (offered, "")


# ── output that nobody reads to its end ──


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_who_leaves_gets_no_error_and_the_files_are_whole(options: list[str]) -> None:
    """`understudy validate part.gcode --html report.html | head`."""
    words = ["validate", str(FLAWED), "--cell", "g60_welding", "--html", "report.html", *options]
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "understudy", *words],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    os.close(reader)
    _, said = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 1, "the verdict"
    assert "Broken" not in said
    assert "Traceback" not in said
    assert Path("report.html").read_text().endswith("</html>\n")


@pytest.mark.parametrize(
    "words",
    [
        ["faces"],
        ["faces", "--json"],
        ["--help"],
        ["validate", str(FLAWED), "--cell", "g60_welding"],
        ["run", "text_robot", "--ephemeral", "--no-hmi", "--for", "1"],
    ],
    ids=" ".join,
)
def test_a_full_disk_is_one_line_and_an_exit_code(words: list[str]) -> None:
    """`understudy run > /dev/full`: the output cannot be written, which is no bug."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "understudy", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    said = done.stderr.splitlines()
    assert (done.returncode, len(said)) == (2, 1), done.stderr
    assert said[0].startswith("error: the output cannot be written: No space left")


# ── the page in the browser ──


def test_a_closed_standard_output_is_no_error() -> None:
    command = shlex.join([sys.executable, "-m", "understudy", "faces", "--json"])
    done = subprocess.run(["sh", "-c", f"{command} >&-"], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_open_shows_the_page_in_the_browser(tmp_path: Path) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part\nmv {opened}.part {opened}\n')
    browser.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "understudy", "run", "text_robot", "--ephemeral", "--open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "BROWSER": str(browser)},
    )
    end = time.monotonic() + PATIENCE_SECONDS
    while not opened.exists() and time.monotonic() < end:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert f"Page: {opened.read_text().strip()}" in shown
