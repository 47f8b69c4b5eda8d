"""`understudy fit`, and the worked example of its page."""

import json
import re
import shlex
from functools import cache
from pathlib import Path
from random import Random

import pytest
from tests.robots.grblhal.hidden_machines import (
    KNOWN,
    cell_text,
    exercise,
    other_program,
    recording,
)
from typer.testing import CliRunner, Result

from understudy.cli import app
from understudy.config import load_config
from understudy.errors import ConfigError
from understudy.wire.chat import write

PAGE = (Path(__file__).parents[3] / "docs/offline/fit.md").read_text()
TRUE = {11: 0.02, 30: 24000, 394: 4.0, 539: 0.0} | {
    **dict(zip((110, 111, 112), (5000.0, 5200.0, 3000.0), strict=True)),
    **dict(zip((120, 121, 122), (640.0, 580.0, 410.0), strict=True)),
}
COMMENT = "# a comment that stays\n"


@cache
def morning() -> str:
    rng = Random(3)
    chat, _ = recording(TRUE, rng, exercise(rng))
    return write({"face": "grblhal"}, chat.events)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the worked example."""
    (tmp_path / "morning.chat").write_text(morning())
    (tmp_path / "my_mill.yaml").write_text(COMMENT + cell_text(KNOWN))
    (tmp_path / "part.nc").write_text(other_program(Random(4)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_the_worked_example_of_the_page(folder: Path) -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    outputs = []
    for line in block.splitlines():
        done = run(*shlex.split(line)[1:])
        assert done.exit_code == 0, (line, done.output, done.exception)
        outputs.append(done.output)
    assert "interval" in outputs[2]
    found = json.loads((folder / "fit.json").read_text())
    rows = re.findall(r"^\| (.+?) `(.+?)` \| (.*?) \| (.*?) \| (.*?) \| .* \|$", PAGE, re.MULTILINE)
    assert [(name, key) for name, key, *_ in rows] == [
        (each["meaning"], each["key"]) for each in found["parameters"]
    ]
    for each, (_, key, value, _, unit) in zip(found["parameters"], rows, strict=True):
        assert unit == each["unit"]
        assert bool(value) == each["visible"], key
        if value:
            assert each["low"] * 0.999 <= float(value) <= each["high"] * 1.001 + 1e-6, key
    fitted = load_config("my_mill_fitted.yaml")
    assert (folder / "my_mill_fitted.yaml").read_text().startswith(COMMENT)
    settings = fitted.robots["mill"].config.settings
    assert settings[120] == pytest.approx(TRUE[120], rel=2e-3)
    rule = fitted.head.scenario.rules["answer_delay"]
    assert (rule.fault, rule.on) == ("message_delay", "mill.grblhal")
    interval = fitted.sections["fit"]["mill"].intervals["robots.mill.settings.120"]
    assert interval.low <= TRUE[120] <= interval.high


def test_the_time_of_a_fitted_cell_has_an_interval(folder: Path) -> None:
    assert run("fit", "morning.chat", "--cell", "my_mill.yaml", "--out", "f.yaml").exit_code == 0
    done = json.loads(run("cycle-time", "part.nc", "--cell", "f.yaml", "--json").output)
    (folder / "true.yaml").write_text(cell_text(TRUE))
    true = json.loads(run("cycle-time", "part.nc", "--cell", "true.yaml", "--json").output)
    low, high = done["interval_s"]
    assert low <= true["total_s"] <= high
    assert high - low < 0.01 * true["total_s"]
    assert "interval_s" not in true


def test_a_second_fit_changes_the_values_of_the_first(folder: Path) -> None:
    assert run("fit", "morning.chat", "--cell", "my_mill.yaml", "--out", "f.yaml").exit_code == 0
    again = run("fit", "morning.chat", "--cell", "f.yaml", "--out", "f.yaml", "--force")
    assert again.exit_code == 0, again.exception
    assert (folder / "f.yaml").read_text().count("fit:") == 1
    assert load_config("f.yaml").robots["mill"].config.settings[120] == pytest.approx(640, rel=2e-3)


def test_a_file_is_not_overwritten(folder: Path) -> None:
    done = run("fit", "morning.chat", "--cell", "my_mill.yaml", "--out", "part.nc")
    assert isinstance(done.exception, ConfigError)
    assert "--force" in str(done.exception)


def test_a_recording_of_another_robot_is_refused(folder: Path) -> None:
    (folder / "other.chat").write_text("@ 0 bench.text_tcp 1\n> PING\\n\n")
    done = run("fit", "other.chat", "--cell", "my_mill.yaml")
    assert isinstance(done.exception, ConfigError)
    assert "mill.grblhal or grblhal" in str(done.exception)
