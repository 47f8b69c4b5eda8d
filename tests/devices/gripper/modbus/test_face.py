"""The endpoints of a virtual gripper: sessions, silence, snapshot, faults, garbage."""

from random import Random
from typing import Any

import pytest
from tests.devices.gripper.modbus.servo_cell import ServoCell

from understudy.app.build import build_cell
from understudy.config import read_config
from understudy.devices.gripper.modbus.server import decoder_for
from understudy.errors import ConfigError
from understudy.protocol.modbus import Frame, build_frame

FACES = {"gripper": {"rtu": {}, "tcp": {"port": 0}}}
RTU, TCP = "g60.gripper.rtu", "g60.gripper.tcp"
ASK = bytes.fromhex("090307D0000185CF")
ASK_TCP = bytes.fromhex("000100000006090307D00001")
ACTIVE = bytes.fromhex("09030231004C15")


def cell_of(**keys: Any) -> ServoCell:
    return ServoCell(width=0, faces=FACES, **keys)


def test_garbage_is_dropped_after_a_silence() -> None:
    cell = cell_of()
    client = cell.run.connect(RTU)
    client.say(b"\x09\x10\x03\xe8\x00\x03\xff")
    assert client.ask(ASK) == b"", "the byte count of the broken frame asks for more bytes"
    cell.advance(0.06)
    assert client.ask(ASK) == ACTIVE


def test_requests_one_behind_the_other_are_all_answered() -> None:
    client = cell_of().run.connect(RTU)
    assert client.ask(ASK * 3) == ACTIVE * 3


def test_a_header_that_is_not_modbus_ends_the_connection() -> None:
    cell = cell_of()
    client = cell.run.connect(TCP)
    client.say(bytes.fromhex("0001 1234 0006 09 03 07D0 0001"))
    assert client.received() == b""
    assert client.peer not in cell.cell.faces[TCP].sessions()
    assert cell.run.connect(TCP).ask(ASK_TCP)[-2:] == b"\x31\x00"


def test_half_a_frame_is_in_the_snapshot() -> None:
    cell = cell_of()
    client = cell.run.connect(RTU)
    client.say(ASK[:5])
    saved = cell.run.snapshot()
    assert client.ask(ASK[5:]) == ACTIVE
    cell.run.restore(saved)
    assert client.ask(ASK[5:]) == ACTIVE
    cell.run.restore(saved)
    cell.advance(0.06)
    assert client.ask(ASK[5:]) == b"", "the silence is on the time axis"


def test_a_rule_makes_the_device_fail() -> None:
    rules = {"broken": {"fault": "device_failure", "on": RTU}}
    client = cell_of(scenario={"rules": rules}).run.connect(RTU)
    assert client.ask(ASK)[:3] == b"\x09\x83\x04"


def test_the_client_and_the_driver_of_the_cell_command_one_device() -> None:
    cell = cell_of()
    client = cell.run.connect(RTU)
    client.ask(build_frame("rtu", Frame(9, 0, bytes.fromhex("1003E8000306 0900 00FF FFFF"))))
    cell.advance(2.0)
    assert cell.state == "CLOSED"
    assert cell.release() == "done"


@pytest.mark.parametrize("gripper", ["{}", "{type: ELECTRIC_SERVO, servo: {real: {to: /dev/x}}}"])
def test_a_gripper_without_a_virtual_modbus_device_has_no_endpoint(gripper: str) -> None:
    robot = f"kind: arm, model: g60, gripper: {gripper}, faces: {{gripper: {{}}}}"
    config = read_config(f"robots: {{g60: {{{robot}}}}}", "cell.yaml")
    with pytest.raises(ConfigError, match=r"faces\.gripper: .* no simulated gripper with Modbus"):
        build_cell(config)


def test_a_request_that_writes_and_reads_is_decoded() -> None:
    ask = build_frame("rtu", Frame(9, 0, bytes.fromhex("17 07D0 0003 03E8 0001 02 0900")))
    found = decoder_for("rtu").read_request(ask, "")
    assert found.names == ("FC23",)
    assert found.fields == {
        "unit": 9, "address": 0x07D0, "count": 3, "write_address": 0x03E8, "values": [0x0900]
    }  # fmt: skip


@pytest.mark.parametrize("endpoint", [RTU, TCP])
def test_garbage_never_stops_the_device(endpoint: str) -> None:
    cell, chance = cell_of(), Random(7)
    good = ASK if endpoint == RTU else ASK_TCP
    for _ in range(150):
        client = cell.run.connect(endpoint)
        data = bytearray(good * chance.randrange(1, 4))
        for _ in range(chance.randrange(4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        pdu = bytes([chance.choice([3, 4, 6, 16, 23, chance.randrange(256)])])
        pdu += chance.randbytes(chance.randrange(20))
        data += build_frame("rtu" if endpoint == RTU else "tcp", Frame(9, 1, pdu))
        data += chance.randbytes(chance.randrange(300))
        client.say(bytes(data))
        client.received()
        client.leave()
        cell.advance(0.06)
    assert len(cell.run.connect(endpoint).ask(good)) == (7 if endpoint == RTU else 11)
