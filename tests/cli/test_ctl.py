"""`understudy ctl`: one request to a running cell, found by its ready file or the registry."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from understudy import cli
from understudy.app.ready_file import ReadyFile, registry_file
from understudy.app.stand_in import StandIn
from understudy.errors import ConfigError


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cell() -> Iterator[StandIn]:
    with StandIn("text_robot", rate=0.0) as cell:
        yield cell


def write(cell: StandIn, path: Path, secret: str | None = None) -> None:
    file = ReadyFile(path, cell.secret if secret is None else secret)
    file.write("text_robot", 0.0, dict(cell.endpoints))


def run(*words: str) -> Result:
    return CliRunner().invoke(cli.app, ["ctl", *words])


def reply(*words: str, code: int = 0) -> Any:
    done = run(*words, "--ready-file", "ready.json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_commands_and_their_parameters(cell: StandIn) -> None:
    write(cell, Path("ready.json"))
    assert reply("status")["result"]["cell"] == "text_robot"
    assert reply("advance", "seconds=3")["result"]["now_s"] == 3.0
    assert reply("inject", "fault=overheat", "on=bench", "parameters={}")["ok"]
    assert reply('{"id": "x", "do": "now"}')["id"] == "x"


def test_a_refusal_is_printed_and_the_exit_code_is_1(cell: StandIn) -> None:
    write(cell, Path("ready.json"))
    assert "did you mean 'advance'?" in reply("advence", code=1)["error"]
    assert "seconds" in reply("advance", "seconds=x", code=1)["error"]
    assert "≥ 0" in run("advance", "seconds=x", "--ready-file", "ready.json").stdout, "no \\u2265"
    write(cell, Path("ready.json"), secret="wrong")
    assert "secret" in reply("status", code=1)["error"]
    write(cell, Path("ready.json"), secret="")
    assert "secret" in reply("status", code=1)["error"]


def test_a_long_request_is_sent_after_the_secret(cell: StandIn) -> None:
    write(cell, Path("ready.json"))
    long = "x" * 100_000
    assert reply(json.dumps({"id": long, "do": "now"}))["id"] == long
    write(cell, Path("ready.json"), secret="wrong")
    assert "secret" in reply(json.dumps({"id": long, "do": "now"}), code=1)["error"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["advance", "3"], "KEY=VALUE"),
        (["advance", "=3"], "KEY=VALUE"),
        (['{"do": "now"', "x"], "nothing may follow"),
        (['{"do": "now"'], "not a JSON object"),
        (["{" * 5000], "not a JSON object"),
        (["now", "--to", "here"], "HOST:PORT"),
    ],
)
def test_wrong_usage_is_an_error(words: list[str], says: str) -> None:
    problem = run(*words).exception
    assert isinstance(problem, ConfigError)
    assert says in str(problem)


def test_the_only_running_cell_is_found_by_itself(cell: StandIn) -> None:
    assert (run("now").exit_code, run("now").stderr) == (1, "no cell is running\n")
    place = registry_file()
    assert place is not None
    write(cell, place)
    assert json.loads(run("now").stdout)["ok"]
    assert json.loads(run("now", "--running", "text_robot").stdout)["ok"]
    assert json.loads(run("now", "--running", str(os.getpid())).stdout)["ok"]
    write(cell, place.with_name("2.json"))
    problem = run("now").exception
    assert isinstance(problem, ConfigError)
    assert "--running NAME, or --ready-file FILE" in str(problem)


def test_a_cell_that_does_not_answer_is_named(cell: StandIn) -> None:
    ReadyFile(Path("ready.json"), "x").write("gone", 1.0, {"control": "tcp://127.0.0.1:1"})
    done = run("now", "--ready-file", "ready.json")
    assert done.exit_code == 1
    assert "gone (pid " in done.stderr
    assert "does not answer" in done.stderr


def test_a_cell_on_another_machine_is_reached_by_its_token(
    cell: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = cell.endpoints["control"].removeprefix("tcp://")
    assert "secret" in json.loads(run("now", "--to", address).stdout)["error"]
    monkeypatch.setenv("UNDERSTUDY_TOKEN", cell.secret)
    assert json.loads(run("now", "--to", address).stdout)["ok"]
    assert run("now", "--to", "127.0.0.1:1").stderr.startswith("127.0.0.1:1 does not answer")


def test_the_lines_of_the_docs_work(cell: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    write(cell, Path("ready.json"))
    page = (Path(__file__).parents[2] / "docs/operator/control.md").read_text()
    code = page.split("```python\n", 1)[1].split("```", 1)[0]
    exec(compile(code, "docs/operator/control.md", "exec"), {})
    assert json.loads(capsys.readouterr().out)["result"]["cell"] == "text_robot"
