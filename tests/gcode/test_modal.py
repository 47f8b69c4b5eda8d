"""The modal state is a value: it can be saved, and it can be reported."""

import msgspec
import pytest
from tests.gcode.talk import Talk

from understudy.gcode import GRBLHAL_MACHINE, Modal, active_codes, after_reset, modes_report

BUSY = (
    "G20 G91 G18 G55 G99 M3 S100 M8 F30 T4",
    "G10 L2 P2 X1 A5",
    "G92 Y2",
    "G43.1 Z3",
    "G28.1",
    "M49",
)


@pytest.fixture
def busy() -> Modal:
    talk = Talk(GRBLHAL_MACHINE)
    talk.say(*BUSY)
    return talk.modal


def test_it_survives_json_and_msgpack(busy: Modal) -> None:
    assert msgspec.json.decode(msgspec.json.encode(busy), type=Modal) == busy
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(busy), type=Modal) == busy


def test_it_lists_the_active_codes(busy: Modal) -> None:
    assert " ".join(active_codes(busy)) == (
        "G0 G55 G92 G18 G20 G91 G94 G40 G43.1 G99 G50 M3 M8 M50 M51"
    )
    assert modes_report(busy).endswith("T0 F762 S100.]")


def test_a_reset_clears_modes_and_keeps_offsets(busy: Modal) -> None:
    after = after_reset(busy)
    assert modes_report(after) == (
        "[GC:G0 G54 G92 G17 G21 G90 G94 G40 G49 G98 G50 M5 M9 T0 F0 S0.]"
    )
    assert (after.offsets, after.g92, after.g28) == (busy.offsets, busy.g92, busy.g28)
    assert after.tool_length == busy.tool_length


def test_a_stop_keeps_the_coordinate_system_too(busy: Modal) -> None:
    assert {"G55", "G43.1"} <= set(active_codes(after_reset(busy, stopped=True)))


def test_the_end_of_a_program_keeps_units_and_numbers(busy: Modal) -> None:
    talk = Talk(GRBLHAL_MACHINE, busy)
    talk.say("M2")
    assert modes_report(talk.modal) == (
        "[GC:G1 G54 G92 G17 G20 G90 G94 G40 G43.1 G99 G50 M5 M9 T0 F762 S100.]"
    )
