"""`understudy journal`: what passed on the wires of a running cell."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy import cli
from understudy.app.ready_file import ReadyFile
from understudy.app.stand_in import StandIn
from understudy.errors import ConfigError
from understudy.operator.journal import MOST_AT_ONCE


@pytest.fixture
def ready(tmp_path: Path) -> Iterator[str]:
    with StandIn("text_robot") as cell:
        file = tmp_path / "ready.json"
        ReadyFile(file, cell.secret).write("text_robot", 0.0, dict(cell.endpoints))
        for number in range(MOST_AT_ONCE // 2):
            cell.ask(f"MOVE_REL {number},0,0")
            cell.ask("MOVE_REL -1,0")
        yield str(file)


def run(*words: str) -> str:
    done = CliRunner().invoke(cli.app, ["journal", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_newest_messages_are_shown(ready: str) -> None:
    lines = run("--last", "3", "--ready-file", ready).splitlines()
    assert len(lines) == 3
    assert lines[1].endswith("bench.text_tcp 1 > MOVE_REL -1,0\\n")
    assert lines[2].endswith("(expected: dx,dy,dz)\\n   # refused")


def test_messages_are_chosen_by_endpoint_and_name(ready: str) -> None:
    found = run("bench.text_tcp", "--name", "move_rel", "--json", "--ready-file", ready)
    rows = json.loads(found)["journal"]
    assert len(rows) == 40
    assert {row["names"][0] for row in rows} == {"MOVE_REL"}
    assert rows[-2]["fields"] == {"dx": MOST_AT_ONCE // 2 - 1.0, "dy": 0.0, "dz": 0.0}
    assert len(run("--unexpected", "--ready-file", ready).splitlines()) == 40


def test_an_unknown_endpoint_is_refused_with_the_known_ones(ready: str) -> None:
    done = CliRunner().invoke(cli.app, ["journal", "bench.text", "--ready-file", ready])
    assert isinstance(done.exception, ConfigError)
    assert "bench.text_tcp" in str(done.exception)


STRICT = "strict: true\nrobots: {bench: {kind: text_robot, faces: {text_tcp: {}}}}\n"


def test_a_strict_cell_logs_each_kind_of_unexpected_request_and_counts_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cell.yaml").write_text(STRICT)
    problem = "bench.text_tcp: GET_POSE is unknown; GET_POS?"
    with StandIn(str(tmp_path / "cell.yaml")) as cell:
        for line in ("GET_POSE", "GET_POS", "GET_POSE"):
            cell.ask(line)
        found = {"strict": True, "count": 2, "requests": [problem]}
        assert cell.do("unexpected") == cell.do("status")["unexpected"] == found
        events = [each for each in cell.do("events")["events"] if each.kind == "message"]
        assert [each.text for each in events] == ["GET_POSE is unknown; GET_POS?"]
        file = tmp_path / "ready.json"
        ReadyFile(file, cell.secret).write("strict", 0.0, dict(cell.endpoints))
        done = CliRunner().invoke(cli.app, ["status", "--ready-file", str(file)])
    assert caplog.messages.count(f"strict: {problem}") == 1
    assert "strict: 2 unexpected requests" in done.output
    assert problem in done.output
