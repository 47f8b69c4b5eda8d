"""Without --rate a cell runs at the time scale of the simulation file it includes."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from understudy.cli import app


@pytest.mark.parametrize(("options", "rate"), [([], 4.0), (["--rate", "2"], 2.0)])
def test_the_default_time_scale_is_the_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], rate: float
) -> None:
    (tmp_path / "simulation.yaml").write_text("simulation: {default_time_scale: 4}")
    cell = tmp_path / "cell.yaml"
    cell.write_text("include: {simulation: simulation.yaml}\nrobots: {arm: {kind: arm}}\n")
    asked: list[Any] = []

    async def live(config: Any, options: Any, *rest: Any, **more: Any) -> None:
        asked.append(options.rate)

    monkeypatch.setattr("understudy.cli.run._live", live)
    done = CliRunner().invoke(app, ["run", str(cell), "--no-hmi", *options])
    assert done.exit_code == 0, done.output
    assert asked == [rate]
