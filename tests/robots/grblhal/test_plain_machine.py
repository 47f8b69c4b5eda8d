"""A machine under its firmware, without a face."""

from collections.abc import Iterator

import msgspec
import pytest

from understudy.errors import ConfigError
from understudy.robots.grblhal.controller import Notice
from understudy.robots.grblhal.machine import Config, build
from understudy.robots.grblhal.machine.machine import Machine, ToolConfig
from understudy.robots.grblhal.settings import DEFAULTS

SECOND = 1_000_000_000
FAST = {110: 6000.0, 120: 500.0}


class Notices:
    """A listener that keeps all notices."""

    def __init__(self, machine: Machine) -> None:
        self.notices: list[Notice] = []
        machine.firmware.listen(lambda notice, now: self.notices.append(notice))

    def of(self, kind: str) -> list[int]:
        return [notice.code for notice in self.notices if notice.kind == kind]


def wakes(machine: Machine, until: int) -> Iterator[int]:
    while (at := machine.next_wake()) is not None and at <= until:
        machine.wake(at)
        yield at


def run(machine: Machine, until: int) -> None:
    for _ in wakes(machine, until):
        pass


def test_a_line_is_answered_when_it_is_queued_not_when_it_is_done() -> None:
    machine = Machine("machine", Config(settings=FAST))
    notices = Notices(machine)
    machine.firmware.lines.execute("G1 X10 F3000", 0)
    assert notices.of("answer") == [0]
    assert machine.status(0).state == "Run"
    run(machine, SECOND)
    assert machine.status(SECOND).state == "Idle"
    assert machine.status(SECOND).position[0] == 10.0


def test_positions_are_whole_steps() -> None:
    machine = Machine("machine", Config(settings=FAST))
    machine.firmware.lines.execute("G1 X10 F3000", 0)
    for tenth in range(3):
        x = machine.status(tenth * SECOND // 10).position[0]
        assert x * 250 == pytest.approx(round(x * 250), abs=1e-9)


def test_an_arc_never_overfills_the_planner() -> None:
    machine = Machine("machine", Config(settings=FAST | {111: 6000.0, 121: 500.0, 12: 0.001}))
    notices = Notices(machine)
    machine.firmware.lines.execute("G2 X0 Y0 I20 F3000", 0)
    assert machine.status(0).free == 0
    assert notices.of("answer") == [], "a part of the arc is not queued yet"
    for at in wakes(machine, 60 * SECOND):
        assert 0 <= machine.status(at).free <= 100
    assert notices.of("answer") == [0]
    assert machine.status(60 * SECOND).position[:2] == (0.0, 0.0)


def test_configured_settings_are_stored_and_a_restore_gives_the_firmwares_own() -> None:
    machine = Machine("machine", Config(settings={110: 1234.0}))
    storage = machine.firmware.storage
    assert storage.settings()[110] == 1234.0
    assert storage.store(111, "99", 0) is None
    assert storage.restore("parameters", 0) is None
    assert storage.settings()[110] == 1234.0
    assert storage.restore("settings", 0) is None
    assert storage.settings() == DEFAULTS


def test_a_restored_setting_stays_restored_in_a_snapshot() -> None:
    machine = Machine("machine", Config(settings=FAST))
    machine.firmware.storage.restore("all", 0)
    other = Machine("machine", Config(settings=FAST))
    other.load(msgspec.json.decode(msgspec.json.encode(machine.save())))
    assert other.firmware.storage.settings() == DEFAULTS


@pytest.mark.parametrize("settings", [{999: 1.0}, {398: 5.0}, {110: -1.0}, {20: 1.0}])
def test_settings_out_of_range_are_a_config_error(settings: dict[int, float]) -> None:
    with pytest.raises(ConfigError, match="settings"):
        build("machine", Config(settings=settings), None)  # type: ignore[arg-type]


def test_settings_and_offsets_are_in_the_snapshot() -> None:
    """They are in the snapshot, also after JSON."""
    machine = Machine("machine", Config(settings=FAST))
    machine.firmware.storage.store(110, "4321", 0)
    machine.firmware.storage.store_startup(0, "g21", 0)
    machine.firmware.lines.execute("G10 L2 P1 X7", 0)
    machine.firmware.lines.execute("G1 X20 F3000", 0)
    machine.wake(SECOND // 10)
    saved = msgspec.json.decode(msgspec.json.encode(machine.save()))
    other = Machine("machine", Config(settings=FAST))
    other.load(saved)
    assert other.firmware.storage.settings()[110] == 4321.0
    assert other.firmware.storage.startup() == ("G21", "")
    assert other.status(SECOND // 10) == machine.status(SECOND // 10)
    for part in (machine, other):
        run(part, 10 * SECOND)
    assert other.status(10 * SECOND) == machine.status(10 * SECOND)
    assert other.status(10 * SECOND).position[0] == 27.0


def test_a_saved_state_is_a_copy() -> None:
    machine = Machine("machine", Config(settings=FAST))
    saved = machine.firmware.save()
    machine.firmware.storage.store_startup(0, "G21", 0)
    machine.firmware.storage.store(110, "1", 0)
    assert saved.startup == ["", ""]
    assert dict(saved.settings) == FAST


def test_check_mode_moves_nothing_and_keeps_modes() -> None:
    machine = Machine("machine", Config())
    assert machine.firmware.switches.check(0) is None
    machine.firmware.lines.execute("G91 G1 X5 F100 M3 S100 M64 P1", 0)
    reading = machine.status(0)
    assert (reading.state, reading.position[0], reading.spindle) == ("Check", 0.0, "M5")
    assert reading.modal.distance == "G91"
    assert machine.io.digital().outputs == 0b10, "the firmware switches pins in check mode, too"
    assert machine.next_wake() is None


# ── tool table ──


def test_a_machine_without_tools_has_no_tool_table() -> None:
    machine = Machine("machine", Config())
    notices = Notices(machine)
    machine.firmware.lines.execute("G43 H1", 0)
    assert notices.of("answer") == [20], "as the firmware without a tool table"


def test_g43_adds_the_offset_of_a_tool_of_the_cell() -> None:
    tools = {1: ToolConfig("mill", (0.0, 0.0, 50.0)), 4: ToolConfig("drill", (1.0, 0.0, 80.0))}
    machine = Machine("machine", Config(settings=FAST, tools=tools))
    notices = Notices(machine)
    for line in ("G43 H1", "G0 Z-60", "G43 H4", "G0 X0 Z-90", "M61 Q1", "G43", "G0 Z-55", "G49"):
        machine.firmware.lines.execute(line, 0)
    run(machine, 100 * SECOND)
    assert notices.of("answer") == [0] * 8
    assert machine.firmware.reading(100 * SECOND).position[:3] == pytest.approx((1.0, 0.0, -5.0))
    for line in ("G43 H7", "T7", "M61 Q7"):
        machine.firmware.lines.execute(line, 100 * SECOND)
    assert notices.of("answer")[8:] == [38, 38, 38]


def test_the_tool_table_survives_a_reset_and_a_snapshot() -> None:
    tools = {1: ToolConfig("mill", (0.0, 0.0, 50.0))}
    machine = Machine("machine", Config(tools=tools))
    notices = Notices(machine)
    machine.firmware.lines.execute("G10 L1 P1 Z55", 0)
    machine.firmware.realtime.reset(0)
    saved = msgspec.to_builtins(machine.save())
    for each in (machine, Machine("machine", Config(tools=tools))):
        each.load(saved)
        each.firmware.lines.execute("G43 H1", 0)
        assert each.firmware.modal.tool_length[2] == 55.0
    assert notices.of("answer") == [0, 0]
