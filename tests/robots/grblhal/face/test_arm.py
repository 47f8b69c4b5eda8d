"""The same face in front of an arm: X Y Z A B C are J1 … J6 in degrees."""

from pathlib import Path

import pytest
from tests.robots.grblhal.face.bench import Bench, fields

from understudy.jobs.tools.manager import ToolManager

WITHOUT_WELDER = Path(__file__).parent / "arm.yaml"


def arm() -> Bench:
    return Bench(str(WITHOUT_WELDER), "g60.grblhal")


def joints(bench: Bench) -> list[float]:
    return [float(value) for value in fields(bench.report())["MPos"].split(",")]


def test_words_are_joints() -> None:
    bench = arm()
    assert bench.ask("G1 X10 Y-20 Z30 A5 B6 C7 F3000") == ["ok"]
    assert bench.state() == "Run"
    bench.idle()
    assert joints(bench) == [10.0, -20.0, 30.0, 5.0, 6.0, 7.0]


def test_the_feed_is_in_degrees_a_minute() -> None:
    bench = arm()
    bench.ask("G1 X60 F1200")
    bench.wait(1.0)
    assert fields(bench.report())["FS"] == "1200,0"


def test_joint_limits_are_soft_limits() -> None:
    bench = arm()
    assert bench.ask("$J=G91 X171 F1000") == ["error:15"]
    assert bench.ask("") == ["ok"]
    bench.say(b"G0 X171\n")
    assert bench.wait(0.1) == ["ALARM:2", "[MSG:Reset to continue]"]


def test_lines_in_process_and_over_the_wire_share_one_program() -> None:
    bench = arm()
    controller = bench.robot
    bench.ask("G91")
    assert "G91" in bench.ask("$G")[0]
    now = bench.virtual_cell.timed_cell.now
    assert controller.is_enabled(), "a line over the wire enables the drives"
    assert controller.send_gcode("G1 A10 F6000", now) is None
    bench.idle()
    assert joints(bench)[0] == 10.0


def test_the_emergency_stop_of_the_cell_is_alarm_10() -> None:
    bench = arm()
    bench.ask("G1 X60 F1200")
    bench.wait(1.0)
    bench.inject("emergency_stop")
    assert bench.received()[0] == "ALARM:10"
    assert bench.ask("G0 X0") == ["error:9"]
    bench.inject("emergency_release")
    assert bench.received()[-1].startswith("GrblHAL")
    assert bench.state() == "Idle"


def test_a_jog_in_process_is_a_jog_on_the_wire() -> None:
    bench = arm()
    bench.ask("M5")
    assert bench.robot.jog(0, 0.1, bench.virtual_cell.timed_cell.now) is None
    bench.wait(1.0)
    assert bench.state() == "Jog"
    assert joints(bench)[0] > 0.0
    assert bench.ask("G0 X0") == ["error:9"]


def test_a_tool_over_the_wire_waits_for_the_operator_and_one_in_process_does_not() -> None:
    bench = arm()
    assert bench.ask("T2 M6") == ["ok"]
    assert bench.state() == "Tool"
    bench.say(b"~")
    assert bench.received()[0].startswith("<Idle|")
    assert bench.robot.send_gcode("T1 M6", bench.virtual_cell.timed_cell.now) is None
    bench.wait(0.1)
    assert fields(bench.report())["State"] == "Idle"
    assert bench.ask("$G")[0].split()[-3] == "T1"


def test_the_tool_change_of_the_design_document_shifts_no_joint() -> None:
    """The tool is in the kinematics: its length is no offset of J3, which is Z on the wire."""
    bench = arm()
    for line in ("G49", "T2", "G43 H2", "G0 Z10"):
        assert bench.ask(line) == ["ok"], line
    bench.idle()
    assert joints(bench) == [0.0, 0.0, 10.0, 0.0, 0.0, 0.0]
    assert "G43" in bench.ask("$G")[0].split()
    assert bench.ask("G43 H7") == ["error:38"]
    assert bench.ask("") == ["ok"]
    assert bench.ask("G49") == ["ok"]


def test_the_lines_of_the_tool_manager_run_over_the_wire() -> None:
    bench = Bench("default", "g60.grblhal")
    tools = ToolManager(table=bench.robot.tools)
    text = tools.generate_tool_change_gcode(2)
    assert isinstance(text, str)
    for line in text.splitlines():
        assert bench.ask(line)[-1] == "ok", line
        if "M6" in line:
            bench.say(b"~")  # the operator has mounted it
    assert bench.robot.firmware.modal.tool == 2


def test_a_motor_fault_is_alarm_17() -> None:
    bench = arm()
    bench.inject("axis_fault", axis=2.0)
    assert bench.received() == ["ALARM:17", "[MSG:Motor fault - clear, then reset to continue]"]


def test_the_limits_come_from_the_model() -> None:
    bench = arm()
    assert bench.ask("$110") == ["$110=7200.000", "ok"]
    assert bench.ask("$110=100") == ["error:53"]
    assert bench.ask("$10=3") == ["ok"]
    assert bench.ask("$H") == ["ok"]
    assert "|H:1|" in bench.report(b"\x87")


def test_a_stop_in_process_leaves_no_line_waiting_for_its_answer() -> None:
    bench = arm()
    bench.say(b"M66 P5 L3 Q60\n")
    bench.robot.stop(bench.virtual_cell.timed_cell.now)
    bench.wait(0.1)
    assert bench.ask("$G")[-1] == "ok"


@pytest.mark.parametrize(("line", "outputs"), [("M7", 0b10), ("M3", 0b01)])
def test_arc_and_gas_are_pins(line: str, outputs: int) -> None:
    bench = arm()
    assert bench.ask(line) == ["ok"]
    assert bench.outputs == outputs
    bench.say(b"\x18")
    assert bench.outputs == 0


def jogging() -> Bench:
    bench = arm()
    now = bench.virtual_cell.timed_cell.now
    assert bench.robot.connect(now) is None
    assert bench.robot.enable(now) is None
    assert bench.robot.jog(0, 0.5, now) is None
    bench.wait(1.0)
    return bench


def test_a_reset_on_the_wire_ends_a_jog_in_process() -> None:
    bench = jogging()
    assert bench.state() == "Jog"
    bench.say(b"\x18")
    assert bench.received()[0] == "ALARM:3"
    stopped = joints(bench)
    assert 20.0 < stopped[0] < 30.0
    bench.wait(1.0)
    assert joints(bench) == stopped
    assert bench.ask("$X")[-1] == "ok"
    assert bench.ask("G0 X0") == ["ok"]
    bench.idle()
    assert joints(bench)[0] == 0.0


@pytest.mark.parametrize(("byte", "answer"), [(b"\x85", []), (b"\x19", ["[MSG:Stop]"])])
def test_the_wire_brakes_a_jog_in_process(byte: bytes, answer: list[str]) -> None:
    bench = jogging()
    before = joints(bench)[0]
    bench.say(byte)
    assert bench.state() == "Jog", "it brakes"
    assert bench.wait(1.0) == answer
    assert bench.state() == "Idle"
    stopped = joints(bench)
    assert before < stopped[0] < before + 20.0
    bench.wait(1.0)
    assert joints(bench) == stopped
    assert bench.ask("G0 X0") == ["ok"]
    bench.idle()
    assert joints(bench)[0] == 0.0


def test_the_door_ends_a_jog_in_process() -> None:
    bench = jogging()
    bench.say(b"\x84")
    assert bench.state() == "Door:2"
    bench.wait(1.0)
    assert bench.state() == "Door:0"
    stopped = joints(bench)
    bench.wait(1.0)
    assert joints(bench) == stopped
    bench.say(b"~")
    assert bench.state() == "Idle"


def test_the_torch_is_off_while_the_door_is_open() -> None:
    bench = arm()
    for line in ("M3 S100", "M8", "G1 X30 F600"):
        assert bench.ask(line) == ["ok"]
    bench.wait(1.0)
    assert bench.outputs == 3
    bench.say(b"\x84")
    bench.wait(1.0)
    assert (bench.state(), bench.outputs) == ("Door:0", 0)
    bench.say(b"~")
    assert bench.outputs == 1, "the arc comes first"
    bench.wait(4.5)
    assert bench.outputs == 3
    bench.idle()
    assert joints(bench)[0] == 30.0


def test_the_operator_can_switch_the_arc_off_in_a_hold() -> None:
    bench = arm()
    bench.ask("M3 S100")
    bench.say(b"!\x9e")
    assert (bench.state(), bench.outputs) == ("Hold:0", 0)
    bench.say(b"\x9e")
    assert bench.outputs == 1


def test_overrides_in_process_and_on_the_wire_are_the_same() -> None:
    bench = arm()
    robot = bench.robot
    robot.connect(0)
    robot.enable(0)
    assert robot.override_feed(50, bench.virtual_cell.timed_cell.now) is None
    bench.wait(0.1)
    assert robot.override_rapid(25, bench.virtual_cell.timed_cell.now) is None
    bench.wait(0.1)
    assert fields(bench.report(b"\x87"))["Ov"] == "50,25,100"
    bench.say(b"\x91")
    assert fields(bench.report(b"\x87"))["Ov"] == "60,25,100", "ten more than the fifty"
    bench.ask("G1 X60 F1200")
    bench.wait(1.0)
    assert fields(bench.report())["FS"] == "720,0"


def test_an_override_in_process_that_a_program_forbids_acts_later() -> None:
    bench = arm()
    bench.ask("M50 P0")
    bench.ask("G1 X60 F1200")
    assert bench.robot.override_feed(50, bench.virtual_cell.timed_cell.now) is None
    bench.wait(1.0)
    now = fields(bench.report(b"\x87"))
    assert (now["FS"], now["Ov"]) == ("1200,0", "50,100,100")
    bench.say(b"\x18")
    assert fields(bench.report(b"\x87"))["Ov"] == "100,100,100"


def test_the_delay_of_arc_and_gas_is_a_setting() -> None:
    bench = arm()
    for line in ("$392=0.5", "$393=0", "M3 S100", "M8", "G1 X30 F600"):
        assert bench.ask(line) == ["ok"]
    bench.wait(1.0)
    bench.say(b"\x84")
    bench.wait(1.0)
    bench.say(b"~")
    assert (bench.state(), bench.outputs) == ("Door:4", 1)
    bench.wait(0.6)
    assert (bench.state(), bench.outputs) == ("Run", 3)
    bench.idle()
    assert bench.ask("$392=0.4") == ["error:52"]


@pytest.mark.parametrize("reset", ["\x18", "$X\nM64 P4\nM65 P4\n"])
def test_a_welder_without_gas_raises_the_alarm_of_the_spindle_until_a_reset(reset: str) -> None:
    bench = Bench("default", "g60.grblhal")
    assert bench.ask("M3") == ["ALARM:14", "error:9"]
    assert bench.ask("M7") == ["error:9"]
    bench.say(reset.encode())
    bench.received()
    assert bench.ask("$X")[-1] == "ok"
    assert bench.ask("M7") == ["ok"]
    assert bench.ask("M3") == ["ok"]
    assert bench.outputs == 0b11


@pytest.mark.parametrize("line", ["M64 P0", "M62 P0"])
def test_a_locked_arc_is_refused_in_the_line_that_asks_for_it(line: str) -> None:
    bench = Bench("pick_place", "g60.grblhal")
    assert bench.ask(line) == ["error:9"]
    assert bench.outputs & 1 == 0
