"""Every tutorial is carried out as it stands, in an empty folder.

A block of code with a title is a file, unless its title begins with "on": that is for another
machine. Blocks of the shell are run in their order, by one shell. A block `text` behind one of them
shows lines of its output.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(each for each in (ROOT / "docs/tutorials").glob("*.md") if each.stem != "README")
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SECONDS = 280
UNUSED_PLUGINS = ("anyio", "hypothesispytest", "schemathesis", "xdist", "xdist.looponfail")
"""They are installed here, not where a tutorial is read; importing them takes a second."""
SHELL = "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"


class Step(NamedTuple):
    """Commands, and the lines of their output that the page shows."""

    commands: str
    shown: list[str]


def steps(text: str) -> Iterator[Step]:
    blocks = BLOCK.findall(text)
    for number, (language, title, body) in enumerate(blocks):
        if title.startswith("on "):
            continue
        if title:
            folder = os.path.dirname(title) or "."
            yield Step(f"mkdir -p {folder}; cat > {title} <<'END_OF_FILE'\n{body}END_OF_FILE\n", [])
        elif language == "sh":
            follows = blocks[number + 1] if number + 1 < len(blocks) else ("", "", "")
            shown = follows[2].splitlines() if follows[0] == "text" else []
            yield Step(body, [line.strip() for line in shown if line.strip() not in ("", "…")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_tutorial_is_as_it_says(page: Path, tmp_path: Path) -> None:
    todo = list(steps(page.read_text()))
    assert any("understudy" in step.commands or "pytest" in step.commands for step in todo)
    outputs = [tmp_path / f"output.{number}" for number in range(len(todo))]
    script = SHELL + "".join(
        f"{{\n{step.commands}}} > {output} 2>&1\n"
        for step, output in zip(todo, outputs, strict=True)
    )
    work = tmp_path / "work"
    work.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_RUNTIME_DIR": str(tmp_path),
        "COLUMNS": "120",
        "PYTEST_ADDOPTS": " ".join(f"-p no:{name}" for name in UNUSED_PLUGINS),
    }
    shell = subprocess.Popen(
        ["bash", "-c", script], cwd=work, env=environment, start_new_session=True
    )
    try:
        code = shell.wait(SECONDS)
    finally:  # with what it has left in the background
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
    said = [output.read_text() if output.exists() else "" for output in outputs]
    assert code == 0, "\n".join(said)
    missing = [
        (line, output)
        for step, output in zip(todo, said, strict=True)
        for line in step.shown
        if line not in " ".join(output.split()) and line not in output
    ]
    assert missing == []


def test_there_is_a_tutorial_for_every_role() -> None:
    assert len(PAGES) >= 7
