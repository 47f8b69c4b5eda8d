"""`understudy fleet` against a real nats-server with robots that answer by a script."""

import json
import math
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.robots.mobile.command_line.scripted_fleet import PATIENCE, ScriptedFleet, nats_server
from typer.testing import CliRunner, Result

from understudy import cli
from understudy.app.ready_file import ReadyFile
from understudy.errors import ConfigError
from understudy.robots.mobile import command_line as fleet_commands
from understudy.robots.mobile.client import FleetMessage, Inbox, NoAnswerError

ROBOTS = ("robot-1", "robot-2", "robot-10")


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other cell is found, and a slow machine has time."""
    monkeypatch.setattr(fleet_commands, "ANSWER_S", PATIENCE)
    monkeypatch.setattr(fleet_commands, "ONCE_S", PATIENCE)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with nats_server(tmp_path_factory.mktemp("nats")) as address:
        yield address


@pytest.fixture
def robots(server: str) -> Iterator[ScriptedFleet]:
    with ScriptedFleet(server, ROBOTS) as robots:
        yield robots


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, ["fleet", *words])


def refused(*words: str) -> str:
    problem = run(*words).exception
    assert isinstance(problem, ConfigError)
    return str(problem)


# ── send ──


def test_the_answers_are_printed_as_they_come(server: str, robots: ScriptedFleet) -> None:
    robots.acks["MOVE_TO_POSE"] = [{"status": each} for each in ("ACKED", "RUNNING", "DONE")]
    done = run("send", "robot-1", "MOVE_TO_POSE", "x=2", "y=-1", "yaw_deg=90", "--server", server)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == ["robot-1: ACKED", "robot-1: RUNNING", "robot-1: DONE"]
    ((kind, sent),) = robots.received
    assert kind == "command.request"
    assert sent["payload"]["parameters"] == {"x": 2, "y": -1, "yaw": math.pi / 2}
    assert sent["robotId"] == "robot-1"
    assert sent["messageId"] == sent["correlationId"]


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ({"status": "DONE"}, 0),
        ({"status": "FAILED", "reason": "SAFETY_STOP"}, 1),
        ({"status": "CANCELED"}, 1),
        ({"status": "REJECTED", "reason": "ROBOT_NOT_READY"}, 1),
    ],
)
def test_the_exit_code_is_the_outcome(
    server: str, robots: ScriptedFleet, last: dict[str, Any], code: int
) -> None:
    robots.acks["STOP"] = [last]
    done = run("send", "robot-2", "STOP", "--server", server)
    assert done.exit_code == code
    assert done.stdout == f"robot-2: {' '.join(last.values())}\n"


def test_without_waiting_the_first_answer_is_enough(server: str, robots: ScriptedFleet) -> None:
    robots.acks["MOVE_TO_POSE"] = [{"status": "ACKED"}]
    done = run("send", "robot-1", "MOVE_TO_POSE", "x=2", "y=1", "--no-wait", "--server", server)
    assert (done.exit_code, done.stdout) == (0, "robot-1: ACKED\n")


def test_a_motion_without_an_end_is_not_waited_for(server: str, robots: ScriptedFleet) -> None:
    robots.acks["MOVE_VELOCITY"] = [{"status": "ACKED"}, {"status": "RUNNING"}]
    done = run("send", "robot-1", "MOVE_VELOCITY", "linear=0.2", "--server", server)
    assert (done.exit_code, done.stdout) == (0, "robot-1: ACKED\nrobot-1: RUNNING\n")


def test_answers_to_others_are_not_mine(server: str, robots: ScriptedFleet) -> None:
    robots.acks["SET_SPEED_LIMIT"] = [{"status": "DONE"}]
    robots.acks["STOP"] = []
    other = run("send", "robot-1", "SET_SPEED_LIMIT", "max_speed_mps=0.3", "--server", server)
    assert other.exit_code == 0
    done = run("send", "robot-1", "STOP", "--timeout", "0.2", "--server", server)
    assert done.exit_code == 1
    assert "robot-1: no answer in 0.2 s: is its cell paused or still starting" in done.stderr


def test_no_end_in_time_is_said() -> None:
    inbox = Inbox()
    inbox.put(FleetMessage("robot-1", "command.ack", "mine", {"status": "ACKED"}, "{}"))
    answers = fleet_commands._answers(inbox, "robot-1", lambda each: True, 0.01)
    assert next(answers).payload == {"status": "ACKED"}
    with pytest.raises(NoAnswerError, match=r"robot-1: no end of it in 0\.01 s$"):
        next(answers)


def test_json_is_the_message_itself(server: str, robots: ScriptedFleet) -> None:
    robots.acks["STOP"] = [{"status": "DONE"}]
    done = run("send", "robot-1", "STOP", "--json", "--server", server)
    assert json.loads(done.stdout)["payload"] == {"commandType": "STOP", "status": "DONE"}


def test_an_answer_cannot_change_the_terminal(server: str, robots: ScriptedFleet) -> None:
    robots.acks["STOP"] = [{"status": "FAILED", "reason": "\x1b[2J\x07\x9b2Jgone"}]
    assert run("send", "robot-1", "STOP", "--server", server).stdout == "robot-1: FAILED gone\n"
    assert run("send", "robot-1", "STOP", "--json", "--server", server).stdout.isascii()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("MOVE_TO_POS x=1 y=1", "did you mean 'MOVE_TO_POSE'?"),
        ("MOVE_TO_POSE x=1 y=1 tolerence=1", "did you mean 'tolerance'?"),
        ("MOVE_TO_POSE x=1", "allowed: x=… y=…"),
        ("MOVE_TO_POSE x=1 y=east", "Expected `float`, got `str` - at `$.y`"),
        ("MOVE_TO_POSE x=1 y=1 yaw_deg=north", "degrees"),
        ("MOVE_TO_POSE x", "KEY=VALUE"),
        ("EXECUTE_ACTION target_position=0.1", "motorId or functionKey"),
    ],
)
def test_a_mistake_is_named_before_anything_is_sent(words: str, said: str) -> None:
    assert said in refused("send", "robot-1", *words.split())


def test_an_unknown_robot_is_named_with_the_known_ones(server: str, robots: ScriptedFleet) -> None:
    said = refused("send", "robot-3", "STOP", "--server", server)
    assert "unknown robot (got 'robot-3'); allowed: robot-1, robot-10, robot-2" in said
    assert robots.received == []


# ── task, hold, release ──


def test_a_task_is_followed_to_its_end(server: str, robots: ScriptedFleet) -> None:
    robots.tasks = [
        ("task.done", {"taskId": "of another"}),
        ("task.progress", {"step": 1, "steps": 2, "progress": 0.5}),
        ("task.done", {}),
    ]
    done = run("task", "robot-1", "x=4", "y=2", "yaw_deg=180", "--server", server)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == ["robot-1: step 1 of 2", "robot-1: done"]
    ((_, sent),) = robots.received
    assert sent["payload"]["taskType"] == "MOVE_TO_POINT"
    assert sent["payload"]["moveToPoint"] == {"x": 4, "y": 2, "yaw": math.pi}


def test_a_task_that_fails(server: str, robots: ScriptedFleet) -> None:
    robots.tasks = [("task.failed", {"errorCode": "NO_ROUTE", "errorMessage": "walls"})]
    done = run("task", "robot-1", "x=4", "y=2", "--server", server)
    assert (done.exit_code, done.stdout) == (1, "robot-1: failed: NO_ROUTE walls\n")


def test_a_task_that_waits_for_others_is_an_answer(server: str, robots: ScriptedFleet) -> None:
    robots.tasks = [
        ("events", {"type": "task.accepted", "ahead": 1}),
        ("events", {"type": "task.ignored"}),
        ("task.done", {"taskId": "other"}),
        ("task.done", {}),
    ]
    done = run("task", "robot-1", "x=1", "y=2", "--server", server)
    assert done.stdout.splitlines() == ["robot-1: accepted, 1 before it", "robot-1: done"]


def test_a_task_of_another_is_no_answer() -> None:
    inbox = Inbox()
    inbox.put(FleetMessage("robot-1", "task.progress", "", {"taskId": "other"}, "{}"))
    answers = fleet_commands._answers(
        inbox, "robot-1", lambda each: fleet_commands._is_about("mine", each), 0.01
    )
    with pytest.raises(NoAnswerError, match="no answer"):
        next(answers)


def test_the_place_of_a_task_is_checked() -> None:
    assert "missing required field `y`" in refused("task", "robot-1", "x=4")
    assert "unknown parameter (got 'z')" in refused("task", "robot-1", "x=4", "y=1", "z=1")


def test_hold_and_release(server: str, robots: ScriptedFleet) -> None:
    held = run("hold", "robot-1", "--server", server)
    assert (held.exit_code, held.stdout) == (0, "robot-1: PAUSED TRAFFIC_HOLD\n")
    released = run("release", "robot-1", "--server", server)
    assert (released.exit_code, released.stdout) == (0, "robot-1: RUNNING\n")


def test_a_robot_that_is_stopped_anyway_can_be_held(server: str, robots: ScriptedFleet) -> None:
    robots.stop_reason, robots.stays = "ESTOP", True
    held = run("hold", "robot-1", "--server", server)
    assert (held.exit_code, held.stdout) == (0, "robot-1: PAUSED ESTOP\n")


# ── watch ──


def test_the_table_shows_every_robot(server: str, robots: ScriptedFleet) -> None:
    done = run("watch", "--once", "--server", server)
    assert done.exit_code == 0, done.output
    rows = [line for line in done.stdout.splitlines() if "robot-" in line]
    assert [word.strip() for word in rows[2].split("│")[1:-1]] == [
        "robot-10",
        "RUNNING",
        "3.50",
        "-2.00",
        "90",
        "0.25",
        "87 %",
        "",
        "",
    ]


def test_the_table_shows_what_a_robot_does_since_before(server: str, robots: ScriptedFleet) -> None:
    robots.acks["SET_SPEED_LIMIT"] = [{"status": "ACKED"}, {"status": "RUNNING"}]
    words = ("send", "robot-2", "SET_SPEED_LIMIT", "max_speed_mps=1", "--timeout", "0.2")
    run(*words, "--server", server)
    done = run("watch", "--once", "--json", "--server", server)
    rows = {row["robotId"]: row["work"] for row in map(json.loads, done.stdout.splitlines())}
    assert rows["robot-2"] == "SET_SPEED_LIMIT RUNNING"


def test_the_rows_as_json(server: str, robots: ScriptedFleet) -> None:
    robots.stop_reason = "OBSTACLE"
    done = run("watch", "--once", "--json", "--server", server)
    first, *others = map(json.loads, done.stdout.splitlines())
    assert (first["robotId"], *(each["robotId"] for each in others)) == ROBOTS
    assert first["silent"] is False
    assert first["state"]["safetyStopReason"] == "OBSTACLE"


def test_the_live_table_ends_with_the_user(server: str, robots: ScriptedFleet) -> None:
    command = [sys.executable, "-m", "understudy", "fleet", "watch", "--json", "--server", server]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        assert b"robot-1" in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, problem = watching.communicate(timeout=PATIENCE)
    assert b"Traceback" not in problem


WATCH = [sys.executable, "-m", "understudy", "fleet", "watch", "--server"]


def test_into_a_file_it_writes_lines_as_they_come(
    server: str, robots: ScriptedFleet, tmp_path: Path
) -> None:
    place = tmp_path / "rows"
    with place.open("wb") as file:
        watching = subprocess.Popen([*WATCH, server], stdout=file, stderr=subprocess.PIPE)
    try:
        wait_for(lambda: "robot-10" in place.read_text(), watching)
        robots.stop_reason = "OBSTACLE"
        wait_for(lambda: "OBSTACLE" in place.read_text(), watching)
    finally:
        watching.send_signal(signal.SIGINT)
        _, problem = watching.communicate(timeout=PATIENCE)
    assert (watching.returncode, problem) == (0, b"")
    head, *lines = place.read_text().splitlines()
    assert head.split("\t")[:3] == ["time", "robot", "status"]
    assert all(line.isprintable() for line in head.split("\t"))
    [moved] = [line.split("\t") for line in lines if "robot-10\tRUNNING" in line][:1]
    assert moved[3:6] == ["3.50", "-2.00", "90"]
    assert len(lines) < 20, "a robot has a line only if something of it is another one"


def test_it_ends_when_its_reader_has_left(server: str, robots: ScriptedFleet) -> None:
    with subprocess.Popen(
        [*WATCH, server], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert watching.stdout.readline().startswith(b"time")
        watching.stdout.close()
        robots.stop_reason = "ESTOP"
        assert watching.wait(PATIENCE) == 0
        assert watching.stderr.read() == b""


def wait_for(holds: Callable[[], bool], process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)


# ── the server ──


def test_the_server_of_a_running_cell_is_found(
    server: str, robots: ScriptedFleet, tmp_path: Path
) -> None:
    robots.acks["STOP"] = [{"status": "DONE"}]
    ReadyFile(tmp_path / "ready.json", "").write("fleet", 1.0, {"nats": server})
    assert run("send", "robot-1", "STOP", "--ready-file", "ready.json").exit_code == 0


def test_a_cell_without_mobile_robots(tmp_path: Path) -> None:
    ReadyFile(tmp_path / "ready.json", "").write("text_robot", 1.0, {"control": "tcp://[::1]:1"})
    said = refused("watch", "--ready-file", "ready.json")
    assert "no NATS server in text_robot" in said
    assert "understudy run fleet" in said


def test_no_server_is_said_at_once() -> None:
    done = run("watch", "--server", "nats://127.0.0.1:1")
    assert done.exit_code == 1
    assert "NATS server nats://127.0.0.1:1" in done.stderr


def test_a_server_without_robots(tmp_path: Path) -> None:
    with nats_server(tmp_path) as empty:
        done = run("send", "robot-1", "STOP", "--server", empty)
    assert done.exit_code == 1
    assert "no stream takes this message" in done.stderr


def test_a_server_that_wants_a_token(tmp_path: Path) -> None:
    with nats_server(tmp_path, "--auth", "secret-token") as guarded:
        for _ in range(20):
            wrong = run("watch", "--server", guarded)
            if "reset by peer" not in wrong.stderr:  # what the server said is lost then
                break
        right = guarded.replace("nats://", "nats://secret-token@")
        with ScriptedFleet(right, ROBOTS):
            done = run("watch", "--once", "--json", "--server", right)
    assert wrong.exit_code == 1
    assert "Authorization" in wrong.stderr
    assert len(done.stdout.splitlines()) == len(ROBOTS)


def test_without_the_package_the_command_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("understudy.robots.mobile.client.find_spec", lambda name: None)
    said = refused("watch", "--server", "nats://127.0.0.1:1")
    assert "needs understudy[nats]: " in said
    assert re.search("pip.* install 'nats-py", said)


# ── schema ──


def test_the_schema_files_are_written(tmp_path: Path) -> None:
    done = run("schema", str(tmp_path / "a" / "b"))
    assert done.exit_code == 0
    names = {path.name for path in (tmp_path / "a" / "b").iterdir()}
    assert {"asyncapi.json", "messages.md", "command.request.schema.json"} <= names
    assert len(names) == 17 + 2
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused("schema", str(tmp_path / "file"))


@pytest.mark.parametrize("name", fleet_commands.fleet.functions)
def test_every_command_shows_an_example(name: str) -> None:
    assert f"Example: understudy fleet {name}" in run(name, "--help").stdout
