"""After `Live.prepare` the first motions of all robots, and the first pictures of cameras, load no
kernel: each is there already."""

import subprocess
import sys
from pathlib import Path

import pytest

FIRST_MOTIONS = """
import asyncio, sys
from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.errors import Refused
from understudy.space.compiled import KERNELS

def loaded():
    found = set()
    for function in KERNELS:
        kernel = getattr(sys.modules[function.__module__], function.__name__)
        found |= {(function.__qualname__, str(s)) for s in getattr(kernel, "overloads", ())}
    return found

async def first_motions(cell):
    live = Live(load_config(cell), Options(rate="step", ephemeral=True, hmi=False))
    for _ in live.prepare():
        pass
    before = loaded()
    def do(name, **parameters):
        answer = live.commands.call(name, parameters, "operator")
        assert not isinstance(answer, Refused), answer
        live.advance(1.0)
    if "g60.camera" in live._cell.components:
        live.on_component("g60.camera", lambda camera, now: camera.grab(now))
    for robot in live.config.robots:
        if robot == "kuka":
            do("move_to", robot="kuka", pose_mm_deg=[20, 0, 30, 0, 0, 0], line=True)
            do("home", robot="kuka")
        elif robot == "g60":
            do("enable", robot="g60")
            do("send_gcode", robot="g60", line="G0 X450 Y-100 Z400 A180 B0 C0")
            do("send_gcode", robot="g60", line="G1 Y100 F6000")
            live.advance(9.0)
            do("jog", robot="g60", frame="joint", axis=0, speed=5)
            do("stop", robot="g60")
        elif robot == "machine":
            do("send_gcode", robot="machine", line="G1 X10 F600")
    await live.stop()
    return sorted(loaded() - before)

late = asyncio.run(first_motions(sys.argv[1]))
print(*late, sep="\\n")
sys.exit(bool(late))
"""


@pytest.mark.parametrize(
    "cell", ["default", "g60_welding", "kuka_eki", "grblhal_6axis", "calibration"]
)
def test_the_first_motion_and_picture_find_every_kernel_loaded(cell: str, tmp_path: Path) -> None:
    script = tmp_path / "first_motions.py"
    script.write_text(FIRST_MOTIONS)
    run = subprocess.run([sys.executable, script, cell], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[:3000] + run.stderr[-2000:]
