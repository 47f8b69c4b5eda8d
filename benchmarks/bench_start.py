"""Start of the command line: CPU seconds of a process, against a bare interpreter."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks import Row

ROUNDS = 5
PEER = "python -c pass"
AIMS = {"--version": "≤ 0.25 s", "--help": "≤ 0.25 s", "validate, 4 lines": "≤ 1.2 s, warm cache"}
PROGRAM = "G21 G90 G94\nG0 X500 Y0 Z600\nG1 X550 Y50 Z600 F3000\nG0 X500 Y0 Z600\n"


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "four_lines.gcode"
        program.write_text(PROGRAM)
        validate = ["validate", str(program), "--cell", "g60_welding"]
        cases = {
            PEER: ["-c", "pass"],
            "--version": ["-m", "understudy", "--version"],
            "--help": ["-m", "understudy", "--help"],
            "validate, 4 lines": ["-m", "understudy", *validate],
        }
        times: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(ROUNDS):  # interleaved: other load affects all of them
            for name, words in cases.items():
                times[name].append(_cpu_seconds(words))
    peer = median(times.pop(PEER))
    return [
        Row(name, f"{ours:.3f} s CPU", f"{PEER} {peer:.3f} s", f"{ours / peer:.1f}", AIMS[name])
        for name, ours in ((name, median(seconds)) for name, seconds in times.items())
    ]


def _cpu_seconds(words: list[str]) -> float:
    before = os.times()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    used = (after.children_user, before.children_user, after.children_system)
    return used[0] - used[1] + used[2] - before.children_system
