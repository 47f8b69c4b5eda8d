"""Lines with extreme values: work is bounded, and every state can be saved and restored."""

import json
from typing import Any

import msgspec
import pytest
from tests.robots.grblhal.face.bench import Bench

from understudy.errors import ConfigError
from understudy.gcode.interpreter import MOST_CALLS
from understudy.ports import Snapshot

FAR = ["G1 X99999999 Y99999999 F0.001", "X-99999999 Y-99999999"]
EXTREMES = {
    "slow and far": FAR * 20,
    "in inches": ["G20", *FAR * 20],
    "slowed by the override": ["G1 X99999999 F0.1", *["\x92"] * 20],
    "scaled": ["G51 X9999 Y9999", *FAR],
    "scaled jog": ["G51 X9999", "$J=X99999999 F1"],
    "scaled spline": [
        "G51 X9999 Y9999",
        "G5 I9999999 J9999999 P9999999 Q9999999 X9999999 Y9999999 F1",
    ],
    "scaled holes": ["G91 G51 X9999 Z9999", "G81 X99999999 Z-9999999 R9999999 F1 L255"],
    "many plunges": ["G83 Z-60 R0 Q0.05 F1 L255"],
    "long dwells": ["G82 Z-1 R1 P99999999 F100 L200"],
}
BEYOND = {
    "plunges too small for single precision": ["G83 Z99999992 R99999999 Q1 F100"],
    "plunges too small at the depth": ["G83 Z-99999999 R-99999900 Q1 F100"],
    "scaled target": ["G51 X99999999", "G1 X99999999 F1000"],
    "scaled jog": ["G51 X99999999", "$J=X99999999 F1000"],
    "scaled offset": ["G51 Z99999999", "G43.1 Z99999999", "G0 Z1"],
    "bends of a spline": [
        "G51 X99999999 Y99999999",
        "G5 I9999999 J9999999 P9999999 Q9999999 X99 Y99 F1000",
    ],
}


def send(lines: list[str]) -> Bench:
    bench = Bench()
    bench.say("".join(line + "\n" for line in lines).encode("latin-1"))
    bench.wait(1.0)
    return bench


@pytest.mark.parametrize("name", EXTREMES)
def test_a_state_of_extreme_values_is_restored(name: str) -> None:
    bench = send(EXTREMES[name])
    saved = json.loads(msgspec.json.encode(bench.virtual_cell.snapshot()))
    assert len(json.dumps(saved)) < 300_000
    after = []
    for _ in range(2):
        bench.virtual_cell.restore(msgspec.convert(saved, Snapshot))
        bench.say(b"?!")
        after.append([*bench.wait(30.0), bench.report(b"\x87")])
    assert after[0] == after[1]
    assert "|MPos:" in after[0][0]


@pytest.mark.parametrize("name", BEYOND)
def test_a_target_beyond_every_machine_is_refused(name: str) -> None:
    bench = Bench()
    *before, last = BEYOND[name]
    assert [bench.ask(line) for line in before] == [["ok"]] * len(before)
    assert bench.ask(last) == ["error:39"]


def homing(*settings: str) -> tuple[Bench, Any]:
    """A machine in its first homing motion, and its snapshot."""
    bench = Bench("grblhal_6axis")
    assert [bench.ask(setting) for setting in settings] == [["ok"]] * len(settings)
    bench.say(b"$H\n")
    bench.wait(1.0)
    return bench, json.loads(msgspec.json.encode(bench.virtual_cell.snapshot()))


def test_the_slowest_homing_is_restored() -> None:
    bench, saved = homing("$25=0.0000000000000001")
    bench.virtual_cell.restore(msgspec.convert(saved, Snapshot))
    bench.wait(86_400.0)
    bench.say(b"\x18")
    assert bench.received()[0] == "ALARM:6"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("groups", []),
        ("groups", [[6]]),
        ("phase", "settle"),
        ("leg", None),
        ("legs_done", -1),
        ("here", [0.0]),
    ],
)
def test_a_homing_cycle_that_cannot_be_is_refused(key: str, value: Any) -> None:
    bench, saved = homing()
    saved["parts"]["machine"]["firmware"]["homing"][key] = value
    with pytest.raises(ConfigError, match=r"machine: firmware\.homing"):
        bench.virtual_cell.restore(msgspec.convert(saved, Snapshot))
    assert bench.idle()[-1] == "ok"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("share", [1e99] * 6),
        ("speed", 0.0),
        ("start", [0.0]),
        ("length", -1.0),
    ],
)
def test_a_leg_that_cannot_be_is_refused(key: str, value: Any) -> None:
    bench, saved = homing()
    saved["parts"]["machine"]["firmware"]["homing"]["leg"][key] = value
    with pytest.raises(ConfigError, match=r"machine: firmware\.homing\.leg"):
        bench.virtual_cell.restore(msgspec.convert(saved, Snapshot))
    assert bench.idle()[-1] == "ok"


def test_a_number_that_no_cell_has_is_refused() -> None:
    bench, saved = homing()
    saved["parts"]["machine"]["firmware"]["origin"][0] = 1e300
    with pytest.raises(ConfigError, match=r"machine: firmware\.origin\.0: 1e\+300 is beyond"):
        bench.virtual_cell.restore(msgspec.convert(saved, Snapshot))


def test_calls_of_g66_are_bounded_as_by_the_memory_of_a_controller() -> None:
    bench = Bench()
    assert [bench.ask("G66 P4") for _ in range(MOST_CALLS)] == [["ok"]] * MOST_CALLS
    assert bench.ask("G66 P4") == ["error:82"]
    assert [bench.ask(""), bench.ask("G67"), bench.ask("G66 P4")] == [["ok"]] * 3
