"""cncjs: its server, and a client that speaks to it as its page does."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tests.robots.grblhal.senders.machine import Machine
from tests.robots.grblhal.senders.processes import (
    free_port,
    install_cncjs,
    program,
    running,
    wait_until,
)
from tests.robots.grblhal.senders.sender import Shown

VERSION = "1.11.5"
BRIDGE = Path(__file__).with_name("cncjs_bridge.js")
SEND_M6 = 1
"""Tool change policy: M6 goes to the controller."""
STEPS = (10, 1)


class Cncjs:
    """A page of cncjs; `Sender`."""

    name = "cncjs"

    def __init__(self, requests: IO[str], events: Path, port: str) -> None:
        self._requests = requests
        self._events = events
        self._port = port
        self._read = 0
        self._last: dict[str, Any] = {}
        self._errors: list[str] = []

    # ── what it shows ──

    def shown(self) -> Shown:
        self._follow()
        status = self._last.get("controller:state", [None, {}])[1].get("status", {})
        place = tuple(float(status.get("wpos", {}).get(axis, "nan")) for axis in "xyz")
        overrides = status.get("ov") or [100]
        state = status.get("activeState", "")
        if state == "Hold":
            state += f":{status['subState']}"
        return Shown(state, place, int(overrides[0]))

    def errors(self) -> list[str]:
        self._follow()
        errors, self._errors = self._errors, []
        return errors

    def finished(self) -> bool:
        self._follow()
        status = self._last["sender:status"][0]
        everything = 0 < status["total"] == status["sent"] == status["received"]
        return bool(everything and self._last["workflow:state"][0] == "idle")

    # ── what an operator does ──

    def connect(self) -> None:
        wait_until(lambda: self._seen("startup"), "the server accepts a page")
        self._emit("open", self._port, {"controllerType": "Grbl", "baudrate": 115200})
        wait_until(lambda: self.shown().state != "", "cncjs shows the state of the machine")

    def unlock(self) -> None:
        self._command("unlock")

    def home(self) -> None:
        self._command("homing")

    def jog(self, move: str) -> None:
        self._command("gcode", f"$J=G91 {move} F1000")

    def zero(self) -> None:
        self._command("gcode", "G10 L20 P1 X0 Y0 Z0")

    def override_feed(self, percent: int) -> None:
        """Presses the buttons +10, -10, +1 and -1 %, from 100 %."""
        self._command("feedOverride", 0)
        rest = percent - 100
        for step in STEPS:
            while abs(rest) >= step:
                signed = step if rest > 0 else -step
                self._command("feedOverride", signed)
                rest -= signed

    def reset(self) -> None:
        self._command("reset")

    def load(self, path: Path) -> None:
        self._emit("ask", "command", self._port, "gcode:load", path.name, path.read_text(), {})
        wait_until(lambda: self._seen("gcode:load"), "the program is loaded")

    def start(self) -> None:
        self._command("gcode:start")

    def hold(self) -> None:
        self._command("gcode:pause")

    def resume(self) -> None:
        self._command("gcode:resume")

    def confirm_tool(self) -> None:
        self._command("cyclestart")

    def _command(self, *words: object) -> None:
        self._emit("command", self._port, *words)

    def _emit(self, *words: object) -> None:
        self._requests.write(json.dumps(words) + "\n")
        self._requests.flush()

    # ── events of the server ──

    def _seen(self, event: str) -> bool:
        self._follow()
        return event in self._last

    def _follow(self) -> None:
        with self._events.open() as events:
            events.seek(self._read)
            *whole, _ = events.read().split("\n")
        self._read += sum(len(line.encode()) + 1 for line in whole)
        for line in whole:
            name, *values = json.loads(line)
            self._last[name] = values
            if name == "serialport:read" and values[0].startswith(("error:", "ALARM:")):
                self._errors.append(values[0])


@contextmanager
def connected(folder: Path, machine: Machine) -> Iterator[Cncjs]:
    """cncjs, installed in ``folder``, connected to a machine."""
    install_cncjs(folder, VERSION)
    node, listens = program("node", "nodejs"), free_port()
    settings = folder / "cncrc.json"
    settings.write_text(json.dumps({"tool": {"toolChangePolicy": SEND_M6}}))
    server = [node, "node_modules/cncjs/bin/cncjs", "--host", "127.0.0.1", "--port", str(listens)]
    server += ["--controller", "Grbl", "--config", str(settings)]
    page = [node, str(BRIDGE), str(folder), f"http://127.0.0.1:{listens}"]
    with running(server, folder, "server.log"):
        log = folder / "server.log"
        wait_until(lambda: "Starting the server" in log.read_text(), "the server of cncjs listens")
        with running(page, folder, "page.log") as process:
            assert process.stdin is not None
            sender = Cncjs(process.stdin, folder / "page.log", machine.port)
            sender.connect()
            yield sender
