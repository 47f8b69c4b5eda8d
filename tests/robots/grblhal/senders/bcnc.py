"""bCNC: the whole program on a display of its own, operated through its web pendant."""

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.robots.grblhal.senders.machine import Machine
from tests.robots.grblhal.senders.processes import (
    free_port,
    install_bcnc,
    program,
    running,
    wait_until,
)
from tests.robots.grblhal.senders.sender import Shown

VERSION = "0.9.16"
ANSWER_S = 5.0
SCALE = "import CNCRibbon; state = CNCRibbon.Page.frames['State']"
"""The page with the slider of the overrides."""
PURGED = re.compile(r"\\x18.*\$#\\n.*(\?.*){3}", re.DOTALL)
"""What bCNC sends after a program, as a transcript has it: a reset, then `$#`, then polls again."""
SETTINGS = """\
[bCNC]
checkinterval = 0
lastcheck = 1
[Connection]
port = {device}
baud = 115200
controller = GRBL1
openserial = 1
pendant = 1
pendantport = {pendant}
[Probe]
toolpolicy = 0
"""
"""No search for updates; the port is opened at the start; tool policy 0: M6 goes to the machine."""


class Bcnc:
    """A pendant of bCNC; `Sender`."""

    name = "bCNC"

    def __init__(self, pendant: int, machine: Machine) -> None:
        self._address = f"http://127.0.0.1:{pendant}"
        self._machine = machine
        self._before = 0
        self._condition = ""
        self._errors: list[str] = []

    # ── what it shows ──

    def shown(self) -> Shown:
        state = json.loads(self._get("/state"))
        condition = state["state"]
        if condition != self._condition and condition.startswith(("error:", "ALARM:")):
            self._errors.append(condition)
        self._condition = condition
        name = "Alarm" if condition.startswith("ALARM:") else condition
        return Shown(name, tuple(state[axis] for axis in ("wx", "wy", "wz")), state["OvFeed"])

    def errors(self) -> list[str]:
        self.shown()
        errors, self._errors = self._errors, []
        return errors

    def finished(self) -> bool:
        """After a program bCNC resets the machine; its pendant does not show when that is done."""
        return PURGED.search(self._machine.transcript.read_text()[self._before :]) is not None

    # ── what an operator does ──

    def connect(self) -> None:
        wait_until(self._answers, "the pendant of bCNC answers")
        wait_until(lambda: self.shown().state == "Idle", "bCNC shows the state of the machine")

    def unlock(self) -> None:
        self._command("UNLOCK")

    def home(self) -> None:
        self._command("HOME")

    def jog(self, move: str) -> None:
        self._command(f"%app.mcontrol.jog('{move}')")

    def zero(self) -> None:
        self._command("SET0")

    def override_feed(self, percent: int) -> None:
        """Moves the slider; bCNC sends steps of 10 and 1 % until the reports agree."""
        self._command(f"%{SCALE}; state.override.set({percent}); state.overrideChange()")

    def reset(self) -> None:
        self._command("RESET")

    def load(self, path: Path) -> None:
        self._before = len(self._machine.transcript.read_text())
        self._command(f"LOAD {path}")

    def start(self) -> None:
        self._command("RUN")

    def hold(self) -> None:
        self._command("FEEDHOLD")

    def resume(self) -> None:
        self._command("RESUME")

    def confirm_tool(self) -> None:
        self.resume()

    def _command(self, text: str) -> None:
        self._get("/send?" + urllib.parse.urlencode({"cmd": text}))

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(self._address + path, timeout=ANSWER_S) as answer:
            data: bytes = answer.read()
        return data

    def _answers(self) -> bool:
        try:
            self._get("/state")
        except (urllib.error.URLError, TimeoutError):
            return False
        return True


@contextmanager
def connected(folder: Path, machine: Machine) -> Iterator[Bcnc]:
    """bCNC, installed in ``folder``, connected to a machine."""
    python = install_bcnc(folder, VERSION)
    pendant = free_port()
    settings = folder / "bcnc.ini"
    settings.write_text(SETTINGS.format(device=machine.port, pendant=pendant))
    with display(folder) as name:
        command = [str(python), "-u", "-m", "bCNC", "-i", str(settings)]
        variables = {"HOME": str(folder), "DISPLAY": name, "PYTHONPATH": ""}
        with running(command, folder, "bcnc.log", variables):
            sender = Bcnc(pendant, machine)
            sender.connect()
            yield sender


@contextmanager
def display(folder: Path) -> Iterator[str]:
    """A display that no one sees; the server chooses its number."""
    command = [program("Xvfb", "xvfb"), "-displayfd", "1", "-screen", "0", "1280x1024x24"]
    with running([*command, "-nolisten", "tcp"], folder, "display.log"):
        log = folder / "display.log"
        number = re.compile(r"^\d+$", re.MULTILINE)
        wait_until(lambda: number.search(log.read_text()) is not None, "the display is there")
        found = number.search(log.read_text())
        assert found is not None
        yield f":{found[0]}"
