"""What `Live.prepare` loads in advance, in a process of its own: kernels are loaded once each."""

import subprocess
import sys
from pathlib import Path

SCRIPT = '''
import asyncio, gc, sys
from pathlib import Path
from understudy.app.live import Live, Options
from understudy.config import load_config

CELL = "robots:\\n  g60: {kind: arm, model: g60}\\n"
BOX = {"name": "part", "type": "box", "dimensions_mm": [50, 50, 50], "position_mm": [0, 0, 200]}


def loaded():
    """Compiled variants of all kernels of the package."""
    from numba.core.dispatcher import Dispatcher

    kernels = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
    return {(k.py_func.__qualname__, s) for k in kernels for s in k.signatures}


async def whole(file):
    live = Live(load_config(str(file)), Options(rate="step", ephemeral=True))
    for _ in live.prepare():
        pass
    live.go()
    before = loaded()
    asked = {"robot": "g60", "object": BOX}
    print(live.commands.call("attach", asked, "operator").held, file=sys.stderr)
    live.advance(0.1)
    print(sorted(name for name, _ in loaded() - before))
    await live.stop()


file = Path(sys.argv[1]) / "cell.yaml"
file.write_text(CELL)
asyncio.run(whole(file))
'''


def test_a_held_object_loads_no_kernel(tmp_path: Path) -> None:
    """Loading compiled code takes longer than the rest of `attach`."""
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip().endswith("('part',)")
    assert done.stdout.strip() == "[]"
