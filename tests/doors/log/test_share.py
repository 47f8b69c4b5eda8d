"""A shared run on a fresh install: the same hash as where it was recorded."""

import json
from pathlib import Path

import pytest
from tests.wheels import ROOT, build, installed, run
from typer.testing import CliRunner

from understudy.app.build import build_cell, repeatable_run
from understudy.cli import app
from understudy.config import load_config
from understudy.doors.log.recording import recorded
from understudy.wire.exchange import InProcessCell

CELL = """
seed: 11
robots:
  bench: {kind: text_robot, faces: {text_tcp: {port: 0}}}
scenario:
  rules:
    noise: {fault: position_noise, on: bench}
"""


@pytest.mark.soak
def test_a_shared_run_has_the_same_hash_on_a_fresh_install(tmp_path: Path) -> None:
    file, log, shared = tmp_path / "own.yaml", tmp_path / "run.mcap", tmp_path / "run.zip"
    file.write_text(CELL)
    config = load_config(str(file))
    cell = InProcessCell(build_cell(config))
    with recorded(log, config, repeatable_run(config), cell):
        client = cell.connect("bench.text_tcp")
        for x in range(100, 120):
            assert client.ask(b"MOVE_ABS %d,0,150,0,0,0\nGET_POS\n" % x)
    done = CliRunner().invoke(app, ["share", str(shared), "--log", str(log), "--json"])
    assert done.exit_code == 0, done.output
    mine = json.loads(done.output)
    for each in (file, log):
        each.unlink()
    programs = installed(build(ROOT, tmp_path / "dist")[0], tmp_path / "env")
    words = ("open", shared, "--check", "--json")
    theirs = json.loads(run(programs / "understudy", *words, folder=tmp_path, HOME=str(tmp_path)))
    assert theirs["hash"] == mine["hash"]
    assert theirs["events"] == mine["events"] > 30
