"""A real mosquitto for tests: on a free port, with a password if wanted; it can be killed."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from tests.free_ports import free_port

DEADLINE_SECONDS = 90


class Broker:
    """`start` and `kill` may be called again and again; the port stays the same."""

    def __init__(self, folder: Path, *, password: str = "") -> None:
        self._folder = folder
        self.port = free_port()
        lines = [f"listener {self.port} 127.0.0.1", "persistence false"]
        if password:
            secrets = folder / "passwords"
            subprocess.run(
                ["mosquitto_passwd", "-b", "-c", str(secrets), "robot", password],
                check=True, timeout=DEADLINE_SECONDS, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            secrets.chmod(0o644)
            lines += [f"password_file {secrets}", "allow_anonymous false"]
        else:
            lines += ["allow_anonymous true"]
        if os.geteuid() == 0:
            lines += ["user root"]
        (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
        assert program is not None, "no broker: apt install mosquitto"
        config = str(self._folder / "mosquitto.conf")
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen([program, "-c", config], stdout=log, stderr=log)
        end = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
            except OSError:
                time.sleep(0.01)
            else:
                return
        raise AssertionError((self._folder / "log").read_text())

    def log(self) -> str:
        return (self._folder / "log").read_text()

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(DEADLINE_SECONDS)
            self._process = None
