"""`understudy replay`: on every wire a recording replays, and a wrong byte has a field."""

import json
import re
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
import zmq
from paho.mqtt.enums import CallbackAPIVersion
from tests.devices.camera.camera_cell import camera_cell
from tests.robots.mobile.vda5050.schemas import node, order
from tests.wire.mqtt.broker import Broker
from typer.testing import CliRunner

from understudy import cli
from understudy.app.stand_in import StandIn
from understudy.errors import ConfigError
from understudy.robots.mobile.stand_in import FleetStandIn
from understudy.wire.chat import parse
from understudy.wire.journal import Entry

GOLDEN = Path(__file__).parents[1] / "golden"
PATIENCE_S = 90.0


def replayed(chat: Path, *options: str) -> dict[str, Any]:
    done = CliRunner().invoke(cli.app, ["replay", str(chat), "--json", "-", *options])
    assert isinstance(done.exception, SystemExit | None), done.output
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.exit_code == int(report["first"] is not None and "--accept" not in options)
    return report


# ── recordings ──


def text_tcp(folder: Path) -> Path:
    with StandIn("text_robot") as cell:
        cell.ask("MOVE_ABS 100,200,150,0,0,90")
        cell.ask("GET_POS")
        cell.ask("GET_STATUS")
        cell.write_transcript(folder / "text.chat")
    return folder / "text.chat"


def grblhal(folder: Path) -> Path:
    with StandIn("grblhal_6axis") as cell:
        for line in ("G1 X10 F6000", "G4 P0.2", "$#", "$$"):
            cell.ask(line)
        cell.write_transcript(folder / "grbl.chat")
    return folder / "grbl.chat"


def modbus(folder: Path) -> Path:
    with StandIn(str(GOLDEN / "gripper/robotiq.yaml")) as cell:
        with socket.create_connection(cell.address("g60.gripper.tcp"), PATIENCE_S) as client:
            client.sendall(bytes.fromhex("0001 0000 0006 09 03 07d0 0003"))
            assert client.recv(100)
        cell.write_transcript(folder / "modbus.chat")
    return folder / "modbus.chat"


def camera(folder: Path) -> Path:
    camera_cell(folder)
    context = zmq.Context()
    with StandIn(str(folder / "cell.yaml")) as cell:
        client = context.socket(zmq.REQ)
        try:
            client.set(zmq.LINGER, 0)
            client.set(zmq.RCVTIMEO, round(PATIENCE_S * 1000))
            client.connect(cell.endpoints["g60.camera"])
            client.send(b'{"grab": "g60", "request_id": 4}')
            client.recv_multipart()
        finally:
            client.close()
            context.term()
        cell.write_transcript(folder / "camera.chat")
    return folder / "camera.chat"


def nats(folder: Path) -> Path:
    with StandIn("mobile_robot") as cell, FleetStandIn(cell) as fleet:
        fleet.robot(fleet.robots[0]).command("MOVE_TO_POSE", x=1.0, y=0.0)
        cell.write_transcript(folder / "nats.chat")
    return folder / "nats.chat"


def mqtt(folder: Path) -> Path:
    broker = Broker(folder)
    broker.start()
    file = folder / "cell.yaml"
    face = f'{{vda5050: {{port: {broker.port}, manufacturer: maker, serial_number: "1"}}}}'
    robot = f"{{kind: mobile, file: amr.json, faces: {face}}}"
    file.write_text(f"nats: {{port: 0}}\nrobots: {{robot-1: {robot}}}\n")
    client = paho.Client(CallbackAPIVersion.VERSION2)
    try:
        with StandIn(str(file)) as cell:
            online = threading.Event()

            def heard(*_: Any) -> None:
                online.set()

            client.on_message = heard
            client.connect("127.0.0.1", broker.port)
            client.subscribe("uagv/v2/maker/1/connection", qos=1)
            client.loop_start()
            assert online.wait(PATIENCE_S), "the robot has not subscribed"
            message = json.dumps(order([node(0, 0, 0)], []))
            client.publish("uagv/v2/maker/1/order", message, qos=1)
            cell.received("order", within_s=PATIENCE_S)
            wait_for(lambda: any(has_order(each) for each in cell.journal()), cell)
            cell.write_transcript(folder / "mqtt.chat")
    finally:
        client.loop_stop()
        client.disconnect()
        broker.kill()
    return folder / "mqtt.chat"


def has_order(entry: Entry) -> bool:
    return entry.names == ("state",) and bool(entry.fields.get("orderId"))


def wait_for(condition: Callable[[], bool], cell: StandIn) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        cell.forward(0.1)


def golden(name: str) -> Callable[[Path], Path]:
    def copied(folder: Path) -> Path:
        source = GOLDEN / name
        text = source.read_text()
        cell = parse(text).facts["cell"]
        beside = source.parent / cell
        found = str(beside) if beside.is_file() else cell
        (folder / "golden.chat").write_text(text.replace(f"cell: {cell}", f"cell: {found}"))
        return folder / "golden.chat"

    return copied


# Recording; the begin of an answer, and what comes in its place; the field of the first byte that
# is another one.
WIRES: dict[str, tuple[Callable[[Path], Path], str, str, str]] = {
    "text over TCP": (text_tcp, "OK 100.00,2", "OK 100.00,3", "y"),
    "grblHAL over TCP": (grblhal, "< $110=", "< $110=9", "$110"),
    "Modbus TCP": (modbus, "\\x03\\x06\\x00", "\\x03\\x06\\x55", "register 0"),
    "Modbus RTU": (golden("gripper/robotiq_rtu.chat"), "U\\xd5", "V\\xd5", "CRC"),
    "frames of the KUKA": (golden("kuka_eki/moves.chat"), "< \\x03", "< \\x04", "g_seq"),
    "ZeroMQ": (camera, '"frame_id":1', '"frame_id":2', "frame_id"),
    "NATS": (nats, '"velocity":{"linear":0', '"velocity":{"linear":7', "payload.velocity.linear"),
    "MQTT": (mqtt, '"driving":false', '"driving":frlse', "driving"),
}


@pytest.mark.parametrize("wire", WIRES)
def test_a_wrong_byte_is_named_with_its_field(wire: str, tmp_path: Path) -> None:
    record, old, new, field = WIRES[wire]
    chat = record(tmp_path)
    same = replayed(chat, "--exact", "--time-tolerance", "0")
    assert same["first"] is None, same["difference"]
    assert (same["score"], same["differences"]) == (1.0, 0)
    lines = chat.read_text().splitlines()
    number = next(n for n, line in enumerate(lines) if line[0] == "<" and old in line)
    lines[number] = lines[number].replace(old, new, 1)
    chat.write_text("\n".join(lines) + "\n")
    report = replayed(chat)
    assert report["first"]["field"] == field, report["difference"]
    assert report["differences"] == 1
    assert 0.0 < report["score"] < 1.0


def test_a_picture_that_differs_is_named_as_a_part(tmp_path: Path) -> None:
    chat = camera(tmp_path)
    chat.write_text(chat.read_text().replace("crc32 ", "crc32 0").replace("\\n", ""))
    text = re.sub(r"(crc32 0.......).", r"\1", chat.read_text())
    chat.write_text(text)
    assert replayed(chat)["first"]["field"] == "part 2"


# ── options ──

LATE = """\
# face: text_tcp
@ 0 bench.text_tcp 1
> HOME\\n
@ 1.25
< OK Homing completed\\n
> GET_STATUS\\n
< OK Idle,26.5,0,10\\n
"""


@pytest.fixture
def late(tmp_path: Path) -> Path:
    """A REAL robot that is slower by 0.25 s, and warmer by half a degree."""
    (tmp_path / "late.chat").write_text(LATE)
    return tmp_path / "late.chat"


def test_numbers_and_times_have_tolerances(late: Path) -> None:
    assert replayed(late)["first"]["field"] == "temperature"
    assert replayed(late, "--tolerance", "0.5")["first"] is None
    report = replayed(late, "--tolerance", "0.5", "--time-tolerance", "0.1")
    assert report["first"]["field"] == "the time"
    assert report["types"][0]["latest_s"] == 0.25
    assert replayed(late, "--tolerance", "0.5", "--time-tolerance", "0.3")["first"] is None


def test_an_accepted_difference_is_a_golden(late: Path, tmp_path: Path) -> None:
    golden = tmp_path / "golden.chat"
    assert replayed(late, "--accept", str(golden))["first"] is not None
    assert "26.1" in golden.read_text()
    same = replayed(golden, "--exact", "--time-tolerance", "0")
    assert (same["first"], same["cell"], same["answers"]) == (None, "text_robot", 2)


def test_the_report_is_a_table(late: Path) -> None:
    done = CliRunner().invoke(cli.app, ["replay", str(late)])
    assert done.exit_code == 1
    assert "1 of 2 answers differ" in done.stdout
    assert "byte 11 (temperature) differs" in done.stdout
    assert "Fidelity 9" in done.stdout


def test_accept_names_a_file_that_cannot_be_written(late: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli.app, ["replay", str(late), "--accept", str(tmp_path)])
    assert isinstance(done.exception, ConfigError)
    assert "--accept cannot be written" in str(done.exception)


def test_a_wrong_event_of_the_operator_is_named(tmp_path: Path) -> None:
    chat = tmp_path / "wrong.chat"
    chat.write_text('# cell: text_robot\n@ 0 cell operator\n! inject {"fault": 3}\n')
    done = CliRunner().invoke(cli.app, ["replay", str(chat)])
    assert "not a fault" in str(done.exception)
    chat.write_text('# cell: text_robot\n@ 0 cell op\n! inject {"fault": "rain", "on": "bench"}\n')
    done = CliRunner().invoke(cli.app, ["replay", str(chat)])
    assert "the recorded fault cannot be injected" in str(done.exception)
