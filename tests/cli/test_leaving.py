"""Ctrl-C and SIGTERM at any time, also during the imports."""

import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, sys

class Impatient:
    def find_spec(self, name, path, target=None):
        if name in ("understudy.cli.run", "understudy.cli.look"):
            try:
                os.kill(os.getpid(), signal.{signal})
            except BaseException:
                pass  # as a library would that is being loaded

sys.meta_path.insert(0, Impatient())
sys.argv = ["understudy", "{command}"]
from understudy.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("command", "signal", "code"),
    [("run", "SIGINT", 0), ("run", "SIGTERM", 0), ("cells", "SIGINT", 130)],
)
def test_a_signal_during_the_start_ends_the_command_silently(
    command: str, signal: str, code: int
) -> None:
    script = SCRIPT.format(command=command, signal=signal)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, b"", b"")


COMPILING = """
import os, signal, sys
from understudy.cli import main, run
from understudy.app.live import Live

def go(self):
    os.kill(os.getpid(), signal.{signal})
    while True:
        pass

Live.go = go
run.SIGNAL_GRACE_S = 0.05
sys.argv = ["understudy", "run", "text_robot", "--ephemeral", "--no-hmi"]
main()
"""
LEAVING = """
import atexit, os, signal, sys

atexit.register(lambda: os.kill(os.getpid(), signal.{signal}))
sys.argv = ["understudy", "cells"]
from understudy.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("script", [COMPILING, LEAVING], ids=["compiling", "leaving"])
def test_a_signal_ends_a_busy_command_and_is_ignored_at_exit(script: str, signal: str) -> None:
    command = [sys.executable, "-c", script.format(signal=signal)]
    ended = subprocess.run(command, capture_output=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, b"")
