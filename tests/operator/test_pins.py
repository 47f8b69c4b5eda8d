"""Pin commands: by number and by name, forced and released, linked, pulsed."""

from typing import Any

import pytest
from tests.benches import Bench


def test_every_pin_has_a_number_a_name_and_an_owner(arm: Bench) -> None:
    io = arm.do("io", robot="g60")
    assert [len(io[bank]) for bank in ("digital_inputs", "digital_outputs")] == [32, 32]
    assert [len(io[bank]) for bank in ("analog_inputs", "analog_outputs")] == [8, 8]
    arc, free = io["digital_inputs"][0], io["digital_inputs"][20]
    assert (arc["name"], arc["owner"], arc["forced"]) == ("ARC_OK", "device", False)
    assert (free["name"], free["owner"]) == ("DI20", "")


@pytest.mark.parametrize("pin", [10, "PART_DETECTED", "DI10", "part_detected"])
def test_an_input_is_forced_and_released(arm: Bench, pin: Any) -> None:
    arm.do("set_input", robot="g60", pin=pin, value=True)
    assert arm.pin("g60", "digital_inputs", 10) == {
        "number": 10, "name": "PART_DETECTED", "value": True, "forced": True, "owner": "",
    }  # fmt: skip
    arm.do("release_input", robot="g60", pin=pin)
    assert not arm.pin("g60", "digital_inputs", 10)["forced"]


def test_trigger_pulses_an_input(arm: Bench) -> None:
    arm.do("trigger", robot="g60", pin="PART_DETECTED", ms=50)
    assert arm.pin("g60", "digital_inputs", 10)["value"]
    arm.forward(0.06)
    assert not arm.pin("g60", "digital_inputs", 10)["value"]


def test_a_link_drives_an_input_until_unlink(arm: Bench) -> None:
    arm.do("link", robot="g60", output=20, input=21, delay_ms=10)
    arm.do("set_output", robot="g60", pin=20, value=True)
    assert arm.pin("g60", "digital_inputs", 21)["owner"] == "link"
    arm.forward(0.02)
    assert arm.pin("g60", "digital_inputs", 21)["value"]
    arm.do("unlink", robot="g60", output=20)
    assert arm.pin("g60", "digital_inputs", 21)["owner"] == ""


def test_analog_pins_are_set_and_released(arm: Bench) -> None:
    arm.do("set_analog_output", robot="g60", pin="WIRE_FEED_SET", value=4.0)
    arm.do("set_analog_input", robot="g60", pin=5, value=8.0, ramp_s=1.0)
    arm.forward(0.5)
    io = arm.do("io", robot="g60")
    assert io["analog_outputs"][0]["value"] == 4.0
    row = {"number": 5, "name": "VACUUM_PRESSURE", "value": 4.0, "forced": True}
    assert io["analog_inputs"][5] == row
    arm.do("set_analog_input", robot="g60", pin=5, value=None)
    assert not arm.pin("g60", "analog_inputs", 5)["forced"]


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("set_input", {"robot": "g60", "pin": 32, "value": True}, "allowed: 0…31"),
        ("set_input", {"robot": "g60", "pin": "PART", "value": True}, "unknown pin"),
        ("set_input", {"robot": "g60", "pin": 1, "value": 1}, "value: "),
        ("set_input", {"robot": "g60", "pin": -1, "value": True}, "pin: "),
        ("set_analog_output", {"robot": "g60", "pin": 0, "value": 11.0}, "outside 0…10 V"),
        ("trigger", {"robot": "g60", "pin": 1, "ms": -1}, "ms: "),
        ("io", {"robot": "no_robot"}, "unknown robot"),
    ],
)
def test_wrong_pin_commands_are_refused_with_a_reason(
    arm: Bench, name: str, parameters: dict[str, Any], says: str
) -> None:
    assert says in arm.refusal(name, **parameters)


def test_commands_on_missing_pins_and_devices_are_refused(bench: Bench) -> None:
    assert bench.refusal("io", robot="bench") == "bench (text_robot) has no pins"
    assert bench.refusal("clear_trail", robot="kuka") == "kuka has no device that leaves a trail"


def test_a_trail_that_is_cleared_right_after_a_stop_stays_empty(arm: Bench) -> None:
    """`stop` returns while the crater is filled: the arc still burns."""
    seam = "G1 X450 Y-100 Z350 A180 B0 C0 F6000\nM7\nM3\nG1 Y100 F600\nM5\n"
    arm.do("load_program", robot="g60", text=seam)
    arm.do("run_program", robot="g60")
    arm.forward(5.0)
    arm.do("stop", robot="g60")
    arm.forward(0.02)
    assert arm.do("status")["parts"]["g60.welder"].arc_on
    assert len(arm.live.watch.look({}).trail["g60"][1]) > 10
    arm.do("clear_trail", robot="g60")
    for _ in range(50):
        arm.forward(0.1)
        assert arm.live.watch.look({}).trail["g60"][1] == []
