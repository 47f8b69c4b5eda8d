"""The example in JavaScript, run by the Node that comes with Playwright."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.browsers import RunningCell
from tests.scratch_packages import NODE

EXAMPLE = Path(__file__).parents[2] / "examples/rest_client.mjs"
SECONDS = 120


def test_a_client_in_javascript_commands_a_cell_over_rest(
    start_cell: Callable[..., RunningCell], tmp_path: Path
) -> None:
    cell = start_cell("text_robot", "--rate", "step")
    ready = tmp_path / "ready.json"
    ready.write_text(json.dumps({"endpoints": cell.endpoints, "secret": cell.secret}))
    done = subprocess.run(
        [NODE, str(EXAMPLE), str(ready)], capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    *lines, refused = done.stdout.splitlines()
    assert refused.startswith("refused: no_such_command: ")
    assert lines == [
        "before: 0",
        "later: 2",
        "bench: EmergencyStopped",
        "bench: Idle",
    ]
