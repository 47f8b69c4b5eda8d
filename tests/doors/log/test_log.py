"""Logs: every reader reads every channel, cut files, a killed cell, the queue, the commands."""

import asyncio
import json
import random
import signal
import socket
import subprocess
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mcap.reader import NonSeekingReader, make_reader
from tests.browsers import RunningCell
from tests.scratch_packages import npm_packages
from typer.testing import CliRunner

import understudy
from understudy.app.build import build_cell, repeatable_run
from understudy.app.live import Live, Options
from understudy.cli import app
from understudy.config import load_config
from understudy.doors.channels import Channel, Message
from understudy.doors.log import command_line, recording
from understudy.doors.log.file import LogFile, marks_of
from understudy.doors.log.recording import LogWriter, facts_of, recorded, start_recording
from understudy.doors.log.replay import (
    config_of,
    is_repeated,
    piece_of,
    repeated,
    run_of_facts,
)
from understudy.errors import ConfigError
from understudy.registry import module_of
from understudy.simulation.cell import write_snapshot
from understudy.units import NS_PER_SECOND
from understudy.wire.exchange import InProcessCell

DEADLINE_SECONDS = 120.0
SEAM = Path(understudy.__file__).parent / "catalog/programs/seam.gcode"
CUTS = 12


def command(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def weld(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a seam, of a cell on virtual time."""
    path = tmp_path_factory.mktemp("logs") / "weld.mcap"
    config = load_config("g60_welding")
    run = repeatable_run(config)
    cell = InProcessCell(build_cell(config, run))
    with recorded(path, config, run, cell) as log:
        timed: Any = cell.timed_cell
        module_of("robots", "arm").operator_actions(timed.components["g60"]).enable(timed.now)
        program = timed.components["g60.program"]
        for _ in program.prepare(SEAM.read_text()):
            pass
        program.load_prepared("seam.gcode")
        program.run(timed.now)
        cell.run_while_busy()
    assert log.writer.dropped == 0
    return path


@pytest.fixture(scope="module")
def crash(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a live cell: a client, commands, a collision and an injected fault."""
    path = tmp_path_factory.mktemp("logs") / "crash.mcap"
    asyncio.run(_record(path))
    return path


async def _record(path: Path) -> None:
    live = Live(load_config("default"), Options(rate=1.0, ephemeral=True))
    await live.listen()
    log, end = start_recording(live.operator, path)
    live.go()
    host, _, port = live.endpoints["bench.text_tcp"].rpartition("://")[2].rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for n in range(4):
        writer.write(b"MOVE_ABS %d,0,150,0,0,0\nGET_POS\n" % (100 + 10 * n))
        await asyncio.wait_for(reader.readline(), DEADLINE_SECONDS)
        await asyncio.wait_for(reader.readline(), DEADLINE_SECONDS)
    writer.close()
    live.commands.call("enable", {"robot": "g60"}, "operator")
    target = {"robot": "g60", "joints_deg": [10, -80, 80, 0, 80, 0]}
    live.commands.call("move_to", target, "operator")
    live.commands.call("advance", {"seconds": 5.0}, "operator")
    await until(lambda: any(e.kind == "collision" for e in live.operator.log.since(0)["events"]))
    live.commands.call("inject", {"fault": "emergency_stop", "on": "g60"}, "operator")
    end()
    log.writer.close()
    await live.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


# ── readers ─────────────────────────────────────────────────────────────────────────────────────


def test_the_reader_of_mcap_reads_every_channel(weld: Path, crash: Path) -> None:
    for path in (weld, crash):
        log = LogFile(path)
        assert log.whole
        with path.open("rb") as stream:
            reader = make_reader(stream)
            found = list(reader.iter_messages(log_time_order=False))
            summary = reader.get_summary()
        assert summary is not None
        assert summary.statistics is not None
        mine = list(log.messages())
        assert summary.statistics.message_count == len(found) == len(mine)
        assert {channel.topic for _, channel, _ in found} == log.schemas.keys()
        assert [each.sequence for each in mine] == list(range(1, len(mine) + 1))
        for schema, _, message in found[:: max(1, len(found) // 200)]:
            assert schema is not None
            assert schema.encoding == "jsonschema"
            assert json.loads(message.data) is not None


def test_a_log_cut_at_any_byte_is_read_up_to_there(weld: Path, tmp_path: Path) -> None:
    whole, data = list(LogFile(weld).messages()), weld.read_bytes()
    rng, cut = random.Random(7), tmp_path / "cut.mcap"
    before = 0
    for size in sorted(rng.randrange(4000, len(data)) for _ in range(CUTS)):
        cut.write_bytes(data[:size])
        log = LogFile(cut)
        found = list(log.messages())
        assert found == whole[: len(found)]
        assert len(found) >= before
        before = len(found)
        theirs = 0
        with cut.open("rb") as stream:
            try:
                for _ in NonSeekingReader(stream).iter_messages(log_time_order=False):
                    theirs += 1
            except Exception:  # noqa: BLE001 (of any kind: the file ends within a record)
                pass
        assert theirs == len(found)
    assert before > len(whole) // 2


@pytest.mark.soak
def test_the_npm_reader_reads_every_channel_and_a_cut_log(weld: Path, tmp_path: Path) -> None:
    environment = npm_packages(tmp_path / "npm", "@mcap/core", "@foxglove/wasm-zstd")
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(weld.read_bytes()[: weld.stat().st_size * 2 // 3])
    script = str(Path(__file__).with_name("mcap_reader.js"))

    def counts(file: Path) -> Any:
        done = subprocess.run(
            ["node", script, str(file)],
            capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    mine = Counter(each.topic for each in LogFile(weld).messages())
    assert counts(weld) == {"indexed": mine, "streamed": mine}
    part = counts(cut)
    assert part["streamed"] == Counter(each.topic for each in LogFile(cut).messages())
    assert isinstance(part["indexed"], str)  # its index is at the end


def test_the_state_of_a_channel_at_a_time(weld: Path) -> None:
    log = LogFile(weld)
    for now in (0, 5 * NS_PER_SECOND, 20 * NS_PER_SECOND):
        wanted = {}
        for entry in log.messages(["/tf", "/understudy/scene"]):
            if entry.at <= now:
                wanted[entry.topic] = entry
        assert log.at(["/tf", "/understudy/scene"], now) == wanted
    assert log.at(["/no/such"], NS_PER_SECOND) == {}


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.mcap").write_text("no log")
    for name in ("text.mcap", "missing.mcap"):
        with pytest.raises(ConfigError, match=r"log|MCAP"):
            LogFile(tmp_path / name)


# ── writing ─────────────────────────────────────────────────────────────────────────────────────


def test_a_full_queue_drops_messages_and_counts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "MOST_WAITING", 5)
    config = load_config("text_robot")
    writer = LogWriter(tmp_path / "full.mcap", facts_of(config, repeatable_run(config)))
    channel, held = Channel("/x", "x", b"{}"), threading.Event()
    writer.put(Message(channel, 0, lambda: held.wait(DEADLINE_SECONDS)))
    for at in range(1, 50):
        writer.put(Message(channel, at, at))
    held.set()
    writer.close()
    found = list(LogFile(writer.path).messages(["/x"]))
    assert writer.dropped >= 50 - 1 - 5 - 1
    assert len(found) + writer.dropped == 50


def test_snapshots_that_have_become_large_are_taken_half_as_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config("text_robot")
    cell = InProcessCell(build_cell(config))
    monkeypatch.setattr(recording, "MOST_SNAPSHOT_BYTES", 4 * len(write_snapshot(cell.snapshot())))
    path = tmp_path / "long.mcap"
    with recorded(path, config, repeatable_run(config), cell):
        for _ in range(400):
            cell.advance(1.0)
    at = [each.at // NS_PER_SECOND for each in LogFile(path).messages(["/understudy/snapshot"])]
    distances = [after - before for before, after in pairwise(at)]
    assert distances[0] == 10
    assert distances[-1] >= 40
    assert distances == sorted(distances)
    assert len(at) < 20


def test_a_message_that_cannot_be_written_ends_the_log_not_the_cell(tmp_path: Path) -> None:
    config = load_config("text_robot")
    writer = LogWriter(tmp_path / "bad.mcap", facts_of(config, repeatable_run(config)))
    channel = Channel("/x", "x", b"{}")
    for value in (1, object(), 2):
        writer.put(Message(channel, 0, value))
    writer.close()
    assert writer.problem
    assert writer.dropped >= 1


def test_a_killed_cell_leaves_a_log(start_cell: Callable[..., RunningCell], tmp_path: Path) -> None:
    path = tmp_path / "killed.mcap"
    cell = start_cell("text_robot", "--log", str(path))
    host, _, port = cell.endpoints["bench.text_tcp"].rpartition("://")[2].rpartition(":")
    deadline = time.monotonic() + DEADLINE_SECONDS
    with socket.create_connection((host, int(port)), DEADLINE_SECONDS) as robot:
        while not path.exists() or LogFile(path).span[1] < 2 * NS_PER_SECOND:
            robot.sendall(b"GET_POS\n")
            assert robot.recv(1000)
            assert time.monotonic() < deadline
        seen = LogFile(path)
    cell.process.send_signal(signal.SIGKILL)
    cell.process.wait(DEADLINE_SECONDS)
    left = LogFile(path)
    assert not left.whole
    assert left.span[1] >= seen.span[1]
    assert list(left.messages())[: len(list(seen.messages()))] == list(seen.messages())


# ── going back ──────────────────────────────────────────────────────────────────────────────────


def test_a_fork_repeats_the_same_bytes(crash: Path) -> None:
    log = LogFile(crash)
    kinds = [mark.kind for mark in marks_of(log)]
    assert {"collision", "alarm", "fault", "snapshot"} <= set(kinds)
    with config_of(log) as config:
        for share, whole in ((0.4, True), (1.0, False), (1.0, True)):
            piece = piece_of(log, round(log.span[1] * share), whole=whole)
            comparison = asyncio.run(repeated(config, run_of_facts(log.facts), piece))
            assert comparison.difference == ""
        assert comparison.count > 20


def test_the_files_of_a_cell_are_in_its_log(tmp_path: Path) -> None:
    folder = tmp_path / "cell"
    folder.mkdir()
    robot = "robots: {bench: {kind: text_robot, faces: {text_tcp: {port: 0}}}}\n"
    (folder / "own.yaml").write_text(robot + "include: {simulation: sim.yaml}\n")
    (folder / "sim.yaml").write_text("simulation: {default_time_scale: 2.0}\n")
    (folder / "other.txt").write_text("not part of the cell")
    config = load_config(str(folder / "own.yaml"))
    cell = InProcessCell(build_cell(config))
    path = tmp_path / "own.mcap"
    with recorded(path, config, repeatable_run(config), cell):
        cell.connect().ask(b"GET_POS\n")
        cell.advance(1.0)
    for each in folder.iterdir():
        each.unlink()
    log = LogFile(path)
    assert log.files.keys() == {"own.yaml", "sim.yaml"}
    shared = tmp_path / "run.zip"
    assert command("share", str(shared), "--log", str(path))[0] == 0
    code, said = command("open", str(shared), "--check")
    assert code == 0
    assert "the same bytes" in said


# ── commands ────────────────────────────────────────────────────────────────────────────────────


def test_the_commands(weld: Path, crash: Path, tmp_path: Path) -> None:
    code, said = command("log", "info", str(weld), "--json")
    assert code == 0
    assert json.loads(said)["channels"]["/tf"]["schema"] == "foxglove.FrameTransforms"
    code, said = command("find", str(crash), "--first", "collision")
    assert code == 0
    assert "seed 3: collision g60" in said
    assert command("find", str(weld))[0] == 1
    code, said = command("find", str(weld), "--first", "line", "--json")
    assert json.loads(said)["line"] == 1
    code, said = command("log", "csv", str(weld), "/g60/joint_states")
    assert said.startswith("time_s,joints.J1.position,")
    drawn = tmp_path / "plot.svg"
    assert command("log", "plot", str(weld), "/g60/tool_pose:pose", "--out", str(drawn))[0] == 0
    assert drawn.read_text().count("<polyline") == 7


def test_files_that_cannot_be_used_are_named(
    weld: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("log", "plot", str(weld), "/g60/tool_pose:pose", "--out", str(tmp_path))
    with pytest.raises(ConfigError, match="cannot be written"):
        command(*words)
    shared = tmp_path / "run.zip"
    for manifest, message in (("[]", "it has no hash"), ("{", "this is no shared run")):
        with zipfile.ZipFile(shared, "w") as packed:
            packed.writestr("understudy.json", manifest)
            packed.write(weld, "run.mcap")
        with pytest.raises(ConfigError, match=message):
            command("open", str(shared), "--check")
    monkeypatch.setattr(command_line, "LARGEST_MANIFEST", 0)
    with pytest.raises(ConfigError, match=r"run.zip: understudy.json in it is too large"):
        command("open", str(shared), "--check")


def test_validate_and_campaigns_log_the_run_that_fails(tmp_path: Path) -> None:
    program = tmp_path / "deep.gcode"
    program.write_text(SEAM.read_text().replace("Z350", "Z250"))
    path = tmp_path / "deep.mcap"
    code, _ = command("validate", str(program), "--cell", "g60_welding", "--log", str(path))
    assert code == 1
    code, said = command("find", str(path))
    assert code == 0
    assert "of deep.gcode, seed 1: collision g60" in said
    plan = tmp_path / "plan.yaml"
    plan.write_text(f"cell: g60_welding\nprograms: {{g60: {program}}}\nruns: 1\n")
    again = tmp_path / "run.mcap"
    code, _ = command("campaign", str(plan), "--only", "5", "--log", str(again))
    assert code == 1
    assert "seed 5: collision g60" in command("find", str(again))[1]
    code, said = command("log", "fork", str(again), "--check")
    assert code == 0
    assert "the same bytes" in said


# ── logs of strangers ──


def test_commands_that_write_files_are_not_repeated() -> None:
    async def commands() -> list[str]:
        live = Live(load_config("calibration"), Options(ephemeral=True))
        names = [each.name for each in live.commands]
        await live.stop()
        return names

    names = asyncio.run(commands())
    saving = [name for name in names if "save" in name.split("_")]
    assert "hand_eye_save" in saving
    assert [name for name in saving if is_repeated(name)] == []
    assert is_repeated("jog")


@pytest.mark.parametrize("facts", ["[]", "{}", " " * (1 << 20) + "{}", "{"])
def test_a_shared_run_without_facts_is_refused(tmp_path: Path, facts: str) -> None:
    file = tmp_path / "run.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("understudy.json", facts)
        packed.writestr("run.mcap", b"")
    done = CliRunner().invoke(app, ["open", str(file), "--check"])
    assert done.exit_code != 0
    assert isinstance(done.exception, ConfigError)
    assert str(file) in str(done.exception)
