"""`understudy run --pty` and `pty:` as senders use them: pyserial on the link, as processes."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import serial
from typer.testing import CliRunner

from understudy import cli
from understudy.cli.options import with_values
from understudy.cli.run import terminals
from understudy.config import load_config, read_config
from understudy.errors import ConfigError

PATIENCE = 60.0
MACHINE = "    kind: machine\n    faces: {grblhal: {}}\n"


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


class Processes:
    def __init__(self) -> None:
        self.all: list[subprocess.Popen[str]] = []

    def run(self, *words: str) -> dict[str, Any]:
        """Runs a cell; returns its ready file."""
        Path("ready.json").unlink(missing_ok=True)
        options = ("--no-hmi", "--port", "control=0", "--ready-file", "ready.json")
        command = [sys.executable, "-m", "understudy", "run", *words, *options]
        pipe = subprocess.PIPE
        self.all.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True))
        until = time.monotonic() + PATIENCE
        while not Path("ready.json").exists():
            assert self.all[-1].poll() is None, self.all[-1].communicate()
            assert time.monotonic() < until
            time.sleep(0.01)
        found: dict[str, Any] = json.loads(Path("ready.json").read_text())
        return found

    def end(self, number: signal.Signals) -> tuple[str, str]:
        self.all[-1].send_signal(number)
        return self.all[-1].communicate(timeout=PATIENCE)


@pytest.fixture
def cell() -> Iterator[Processes]:
    started = Processes()
    yield started
    for process in started.all:
        process.kill()
        process.communicate()


def opened(path: str, **options: Any) -> serial.Serial:
    return serial.Serial(path, 115200, timeout=PATIENCE, write_timeout=PATIENCE, **options)


def ask(port: serial.Serial, line: bytes) -> list[bytes]:
    """Sends a line; returns the lines of its answer, `ok` or `error:n` last."""
    port.write(line + b"\n")
    lines = [port.readline()]
    while not lines[-1].startswith((b"ok", b"error:")):
        assert lines[-1], "no answer"
        lines.append(port.readline())
    return [each.rstrip(b"\r\n") for each in lines]


def test_a_sender_uses_the_link_as_a_serial_port(cell: Processes) -> None:
    ready = cell.run("grblhal_6axis", "--pty", "./ttyGRBL")
    path = str(Path("ttyGRBL").absolute())
    assert ready["endpoints"]["machine.grblhal"] == f"pty:{path}"
    terminal = os.stat(path)
    assert stat.S_ISCHR(terminal.st_mode)
    assert stat.S_IMODE(terminal.st_mode) == 0o600

    with opened(path) as port:
        assert ask(port, b"$I")[0].startswith(b"[VER:1.1f")
        port.baudrate = 230400
        assert ask(port, b"G91") == [b"ok"], "a terminal has every baud rate"
        with pytest.raises(OSError) as refused:
            port.dtr = False
        assert refused.value.errno in (errno.ENOTTY, errno.EINVAL), "it has no modem lines"
        assert ask(port, b"G4 P0") == [b"ok"], "and goes on"
        text = bytes(byte for byte in range(0x20, 0x7F) if byte not in b"?!~")
        echoed = ask(port, b"(" + text.replace(b"(", b"").replace(b")", b"") + b"\t)")
        assert echoed == [b"ok"], "raw: no echo, nothing interpreted"
    with opened(path, exclusive=True) as port:
        answer = ask(port, b"$G")
        assert b"G91" in answer[0], "the session goes on, as on a cable"

    out, err = cell.end(signal.SIGHUP)
    assert err == ""
    assert f"Serial port of machine.grblhal: {path}\n" in out
    assert {each.name for each in Path().iterdir()} == {"understudy-" + str(os.getuid())}


def test_the_links_of_a_killed_cell_are_replaced(cell: Processes) -> None:
    Path("cell.yaml").write_text(f"robots:\n  machine:\n{MACHINE}  other:\n{MACHINE}")
    folder = Path(f"understudy-{os.getuid()}").absolute()
    links = {f"{name}.grblhal": f"pty:{folder}/{name}.grblhal" for name in ("machine", "other")}
    ready = cell.run("cell.yaml", "--pty")
    assert {name: ready["endpoints"][name] for name in links} == links
    cell.end(signal.SIGKILL)
    assert all((folder / name).is_symlink() for name in links)
    cell.run("cell.yaml", "--pty")
    with opened(str(folder / "other.grblhal")) as port:
        assert ask(port, b"$I")[-1] == b"ok"
    cell.end(signal.SIGTERM)
    assert list(folder.iterdir()) == []


def test_a_cell_file_names_the_path_and_a_taken_one_ends_the_second_cell(
    cell: Processes, tmp_path: Path
) -> None:
    face = f"{{grblhal: {{pty: {tmp_path}/ttyGRBL}}}}"
    Path("cell.yaml").write_text(f"robots: {{m: {{kind: machine, faces: {face}}}}}\n")
    cell.run("cell.yaml")
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, ["status"])
    assert f"pty:{tmp_path}/ttyGRBL" in shown.stdout
    second = subprocess.run(
        [sys.executable, "-m", "understudy", "run", "cell.yaml", "--port", "control=0"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert second.returncode == 2
    assert f"terminal of a running cell (pid {cell.all[0].pid})" in second.stderr
    with opened(f"{tmp_path}/ttyGRBL") as port:
        assert ask(port, b"$I")[-1] == b"ok", "the first cell still answers"
    cell.end(signal.SIGINT)
    assert not os.path.lexists("ttyGRBL")


# ── words of the command line and of the cell file ──


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (["--pty"], ["--pty="]),
        (["--pty", "--ephemeral"], ["--pty=", "--ephemeral"]),
        (["--pty", "my_cell"], ["--pty=", "my_cell"]),
        (["--pty", "./tty", "my_cell"], ["--pty", "./tty", "my_cell"]),
        (["--pty", "a.grblhal=tty"], ["--pty", "a.grblhal=tty"]),
        (["--pty=tty"], ["--pty=tty"]),
        (["--pty", "--pty", "/x"], ["--pty=", "--pty", "/x"]),
        (["--", "--pty", "x"], ["--", "--pty", "x"]),
    ],
)
def test_the_path_is_optional(words: list[str], read: list[str]) -> None:
    assert with_values(words) == read


def test_faces_that_are_serial_ports_get_one_and_others_by_name() -> None:
    config = load_config("default")
    assert list(terminals([""], config, ephemeral=True)) == ["g60.grblhal"]
    assert list(terminals(["bench.text_tcp=x"], config, ephemeral=True)) == ["bench.text_tcp"]


@pytest.mark.parametrize(
    ("cell", "given", "problem"),
    [
        ("text_robot", "", "none with a serial port (got ''); allowed: bench.text_tcp=PATH"),
        ("grblhal_6axis", "machin.grblhal=/x", "did you mean 'machine.grblhal'?"),
        ("grblhal_6axis", "/a@1", "not a path for a terminal"),
    ],
)
def test_a_wrong_terminal_is_explained(cell: str, given: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        terminals([given], load_config(cell), ephemeral=False)
    assert problem in str(refused.value)


def test_one_path_for_two_serial_ports_is_refused() -> None:
    config = read_config(f"robots:\n  a:\n{MACHINE}  b:\n{MACHINE}", "cell.yaml")
    with pytest.raises(ConfigError, match=r"several .*a\.grblhal=/x, b\.grblhal=/x"):
        terminals(["/x"], config, ephemeral=False)


@pytest.mark.parametrize(
    ("value", "problem"),
    [("ttyGRBL", "an absolute path"), ("5", "true or false"), ("[a]", "true or false")],
)
def test_a_wrong_path_in_a_cell_file_is_explained(value: str, problem: str) -> None:
    text = f"robots: {{m: {{kind: machine, faces: {{grblhal: {{pty: {value}}}}}}}}}\n"
    with pytest.raises(ConfigError) as refused:
        read_config(text, "cell.yaml")
    assert problem in str(refused.value)
    assert "cell.yaml:1" in str(refused.value)
