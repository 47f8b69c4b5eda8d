"""In STOPPED nothing moves and no motion is accepted; faults make ERROR; `reset` clears them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.benches import Bench, bench_of
from tests.parts import components_of, part
from tests.robots.kuka.kuka_wire import command, feedback

import understudy
from understudy import registry
from understudy.app.build import build_cell, load_cell
from understudy.config import load_config
from understudy.devices.welder.welder import Welder
from understudy.ports import Injectable
from understudy.ports.hmi import Viewed
from understudy.ports.refusals import INHIBITED
from understudy.robots.arm.controller import ArmController
from understudy.robots.kuka.robot import KukaGcodeServer
from understudy.robots.text_robot.robot import TextRobot
from understudy.simulation.engine import SimulationEngine
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.wire.exchange import Client, InProcessCell

__all__ = ["bench_of"]

BRAKING = 1.0
"""Seconds in which every robot comes to rest."""


def quiet_cell(name: str) -> InProcessCell:
    """A cell without scenario rules."""
    return InProcessCell(build_cell(load_config(name).without_rules()))


def engine_of(cell: InProcessCell) -> SimulationEngine:
    return part(cell, "engine", SimulationEngine)


def places(cell: InProcessCell) -> dict[str, tuple[Any, ...]]:
    """Joints and tool of every robot."""
    now, robots = cell.timed_cell.now, components_of(cell)
    views = {name: robot.view(now) for name, robot in robots.items() if isinstance(robot, Viewed)}
    return {name: (tuple(view.q), tuple(view.tcp)) for name, view in views.items()}


class Wires:
    """Clients of the robots of the default cell."""

    def __init__(self, cell: InProcessCell) -> None:
        self.cell = cell
        self.grbl = cell.connect("g60.grblhal")
        self.text = cell.connect("bench.text_tcp")
        self.kuka = cell.connect("kuka.kuka_eki.command")
        cell.advance(0.1)
        for client in (self.grbl, self.text, self.kuka):
            client.received()

    def move(self, seq: int, far: float) -> None:
        """Long motions of all robots."""
        self.grbl.say(f"G1 X{far} F600\n".encode())
        self.text.say(f"MOVE_ABS {far},0,150,0,0,0\n".encode())
        self.kuka.say(command(seq, X=far, F=20.0) + command(seq + 1, Y=far))

    def status(self) -> bytes:
        self.grbl.received()
        return self.grbl.ask(b"?").split(b"|")[0]


def test_a_stop_stops_every_robot_and_refuses_motion_until_start() -> None:
    cell = quiet_cell("default")
    engine, wires = engine_of(cell), Wires(cell)
    rest = places(cell)
    wires.move(1, 60.0)
    cell.advance(0.3)
    moving = places(cell)
    assert {name for name in rest if moving[name] != rest[name]} == {"g60", "bench", "kuka"}

    engine.stop(cell.timed_cell.now)
    cell.advance(BRAKING)
    assert wires.text.received() == b"ERROR Robot in emergency stop state\n"
    stood = places(cell)
    assert engine.state(cell.timed_cell.now) == "STOPPED"
    wires.kuka.received()
    wires.grbl.received()
    wires.move(3, 90.0)
    cell.advance(5.0)
    assert places(cell) == stood

    assert wires.grbl.received() == b"error:9\r\n"
    assert wires.status() == b"<Alarm"
    assert wires.grbl.ask(b"$X\n") == b"error:79\r\n"
    assert wires.text.received() == b"ERROR Robot in emergency stop state\n"
    assert wires.text.ask(b"RESET\nHOME\n") == (
        b"OK Error reset\nERROR Robot in emergency stop state\n"
    )
    assert feedback(wires.kuka.received())[-1] == (4, 0), "refused records count as executed"
    messages = part(cell, "kuka", KukaGcodeServer).status(cell.timed_cell.now).messages
    assert messages[-2:] == (f"record 3: {INHIBITED.reason}", f"record 4: {INHIBITED.reason}")
    assert engine.state(cell.timed_cell.now) == "STOPPED"

    engine.start(cell.timed_cell.now)
    cell.advance(5.0)
    assert places(cell) == stood, "nothing resumes by itself"
    assert engine.state(cell.timed_cell.now) == "RUNNING"
    assert wires.status() == b"<Idle"
    wires.move(5, 90.0)
    cell.advance(5.0)
    after = places(cell)
    assert {name for name in stood if after[name] != stood[name]} == {"g60", "bench", "kuka"}


def test_a_stopped_cell_is_still_stopped_after_a_restore() -> None:
    cell = quiet_cell("default")
    engine_of(cell).stop(0)
    snapshot = cell.snapshot()
    other = quiet_cell("default")
    other.restore(snapshot)
    wires, rest = Wires(other), places(other)
    wires.move(1, 60.0)
    other.advance(5.0)
    assert places(other) == rest
    assert engine_of(other).state(other.timed_cell.now) == "STOPPED"


def test_a_stopped_machine_refuses_lines_jogs_and_homing() -> None:
    cell = quiet_cell("grblhal_6axis")
    engine, client = engine_of(cell), cell.connect()
    client.say(b"G1 X100 F600\nG1 Y100\n")
    cell.advance(1.0)
    client.received()
    engine.stop(cell.timed_cell.now)
    cell.advance(BRAKING)
    stood = places(cell)
    assert b"[MSG:Stop]" in client.received()
    for line, answer in {
        b"G1 Y50 F600\n": b"error:9\r\n",
        b"$J=G91 X5 F600\n": b"error:79\r\n",
        b"$H\n": b"error:79\r\n",
        b"$X\n": b"error:79\r\n",
    }.items():
        assert client.ask(line) == answer, line
    client.say(b"~\x18")
    cell.advance(5.0)
    assert b"'$H'|'$X' to unlock" in client.received()
    client.say(b"G1 Y50 F600\n")
    cell.advance(5.0)
    assert places(cell) == stood
    engine.start(cell.timed_cell.now)
    cell.advance(0.1)
    assert client.received().endswith(b"[MSG:Caution: Unlocked]\r\n")
    assert client.ask(b"G1 Y1 F600\n") == b"ok\r\n"
    cell.advance(5.0)
    assert places(cell) != stood


def test_lines_that_wait_behind_a_pause_are_dropped_and_not_answered() -> None:
    cell = quiet_cell("grblhal_6axis")
    engine, client = engine_of(cell), cell.connect()
    client.say(b"G1 X1 F600\nM0\nG1 Y50 F600\n")
    cell.advance(2.0)
    client.received()
    stood = places(cell)
    engine.stop(cell.timed_cell.now)
    cell.advance(BRAKING)
    assert b"error:" not in client.received()
    engine.start(cell.timed_cell.now)
    cell.advance(5.0)
    assert places(cell) == stood


def test_a_robot_from_outside_stops_by_its_emergency_stop(tmp_path: Path) -> None:
    """Without the Protocol `Supervised`, only a reset releases it."""
    registry.register("robots", "plain_rail", "tests.simulation.plain_rail")
    file = tmp_path / "rail.yaml"
    file.write_text("robots: {rail: {kind: plain_rail}}")
    cell = load_cell(str(file))
    engine, rail = engine_of(cell), components_of(cell)["rail"]
    engine.stop(0)
    assert (rail.status(0), engine.state(0)) == ("stopped", "STOPPED")
    engine.start(0)
    assert (rail.status(0), engine.state(0)) == ("stopped", "RUNNING")
    engine.reset(0)
    assert rail.status(0) == "ready"


# ── the operator ──


def test_the_operator_cannot_move_any_robot_of_a_stopped_cell(
    bench_of: Callable[[str], Bench],
) -> None:
    bench = bench_of("default")
    bench.do("enable", robot="g60")
    bench.do("load_program", robot="g60", text="G0 A10\n")
    assert bench.do("stop")["state"] == "STOPPED"
    assert not any(each["error"] for each in bench.do("robots")["robots"])
    pose = [10, 0, 120, 0, 0, 0]
    for robot in ("g60", "bench", "kuka"):
        reason = INHIBITED.reason
        assert bench.refusal("move_to", robot=robot, pose_mm_deg=pose, line=True) == reason
        assert bench.refusal("home", robot=robot) == reason
        jog = {"frame": "base", "axis": 0, "speed": 10, "step": 5}
        assert bench.refusal("jog", robot=robot, **jog) == reason
    assert bench.refusal("send_gcode", robot="g60", line="G0 A5") == INHIBITED.reason
    assert bench.refusal("run_program", robot="g60") == INHIBITED.reason
    assert bench.refusal("step_program", robot="g60") == INHIBITED.reason
    assert bench.do("reset")["state"] == "RUNNING"
    bench.do("enable", robot="g60")
    bench.do("run_program", robot="g60")
    bench.forward(1.0)
    assert bench.joints("g60")[0] == 10.0


def test_the_reset_of_one_robot_does_not_start_a_stopped_cell(
    bench_of: Callable[[str], Bench],
) -> None:
    bench = bench_of("default")
    bench.do("stop")
    for robot in ("g60", "bench", "kuka"):
        bench.do("reset", robot=robot)
        assert bench.refusal("home", robot=robot) == INHIBITED.reason
    assert bench.do("metrics")["state"] == "STOPPED"
    for robot in ("bench", "kuka"):
        part_of_cell: Any = bench.live._cell.components[robot]
        before = part_of_cell.view(0).tcp
        bench.forward(2.0)
        assert part_of_cell.view(nanoseconds_of(bench)).tcp == before


def nanoseconds_of(bench: Bench) -> int:
    return bench.live._cell.now


# ── errors ──


def text_stop(cell: InProcessCell) -> None:
    cell.connect("bench.text_tcp").ask(b"STOP\n")


def overheat(cell: InProcessCell) -> None:
    part(cell, "bench", TextRobot).inject("overheat", {}, cell.timed_cell.now)
    client: Client = cell.connect("bench.text_tcp")
    client.ask(b"MOVE_ABS 1\n")  # another error code hides that of the temperature


def alarm_on_the_wire(cell: InProcessCell) -> None:
    client = cell.connect("g60.grblhal")
    client.say(b"G1 X900 F600\n")
    cell.advance(1.0)
    assert b"ALARM:2" in client.received()


def emergency_stop(robot: str) -> Callable[[InProcessCell], None]:
    def press(cell: InProcessCell) -> None:
        found = components_of(cell)[robot]
        assert isinstance(found, Injectable)
        found.inject("emergency_stop", {}, cell.timed_cell.now)

    return press


@pytest.mark.parametrize(
    "cause",
    [
        text_stop,
        overheat,
        alarm_on_the_wire,
        emergency_stop("g60"),
        emergency_stop("bench"),
        emergency_stop("kuka"),
    ],
)
def test_an_unreset_fault_is_an_error_until_reset(cause: Callable[[InProcessCell], None]) -> None:
    cell = quiet_cell("default")
    engine = engine_of(cell)
    cause(cell)
    assert engine.state(cell.timed_cell.now) == "ERROR"
    engine.stop(cell.timed_cell.now)
    engine.start(cell.timed_cell.now)
    cell.advance(BRAKING)
    assert engine.state(cell.timed_cell.now) == "ERROR", "stop and start are no reset"
    engine.reset(cell.timed_cell.now)
    assert engine.state(cell.timed_cell.now) == "RUNNING"


def test_the_emergency_stop_of_the_cell_stops_every_robot_at_once_and_none_resumes() -> None:
    cell = quiet_cell("default")
    engine, wires = engine_of(cell), Wires(cell)
    rest = places(cell)
    wires.move(1, 60.0)
    cell.advance(0.3)
    engine.emergency_stop(cell.timed_cell.now)
    stood = places(cell)
    assert {name for name in rest if stood[name] != rest[name]} == {"g60", "bench", "kuka"}
    assert engine.state(cell.timed_cell.now) == "ERROR"
    cell.advance(1.0)
    assert wires.text.received() == b"ERROR Robot in emergency stop state\n"
    assert b"ALARM:10" in wires.grbl.received()
    wires.move(3, 90.0)
    cell.advance(5.0)
    assert places(cell) == stood
    engine.reset(cell.timed_cell.now)
    cell.advance(5.0)
    assert places(cell) == stood
    wires.move(5, 90.0)
    cell.advance(5.0)
    after = places(cell)
    assert {name for name in stood if after[name] != stood[name]} == {"g60", "bench", "kuka"}


# ── what reset clears ──


class Reset:
    """A welding arm, and one of the ways to reset it."""

    def __init__(self, robot: ArmController, now: Callable[[], int], do: Callable[[], object]):
        self.robot, self.now, self.do = robot, now, do


def by_engine(bench_of: Callable[[str], Bench]) -> Reset:
    cell = load_cell("g60_welding")
    arm = part(cell, "g60", ArmController)
    return Reset(arm, lambda: cell.timed_cell.now, lambda: engine_of(cell).reset(0))


def by_controller(bench_of: Callable[[str], Bench]) -> Reset:
    arm = understudy.VirtualController("g60", welder={})
    return Reset(arm._inner, lambda: 0, arm.reset)


def by_operator(bench_of: Callable[[str], Bench], **robot: str) -> Reset:
    bench = bench_of("g60_welding")
    arm = bench.live._cell.components["g60"]
    assert isinstance(arm, ArmController)
    return Reset(arm, lambda: bench.live._cell.now, lambda: bench.do("reset", **robot))


def by_operator_of_robot(bench_of: Callable[[str], Bench]) -> Reset:
    return by_operator(bench_of, robot="g60")


@pytest.mark.parametrize("way", [by_engine, by_controller, by_operator, by_operator_of_robot])
def test_reset_clears_the_same_on_every_way(
    way: Callable[[Callable[[str], Bench]], Reset], bench_of: Callable[[str], Bench]
) -> None:
    reset = way(bench_of)
    io, welder = reset.robot.io, reset.robot.parts["welder"]
    assert isinstance(welder, Welder)
    now = reset.now()
    welder.inject("wire_fault", {}, now)
    io.set_digital_input(9, True, now)
    io.simulate_sensor_trigger(10, True, now, 60_000.0)
    io.simulate_analog_sensor(3, 5.0, now)
    io.set_digital_output(8, True, now)
    io.set_analog_output(1, 4.0, now)
    assert welder.active_faults()
    reset.do()
    assert welder.active_faults() == ()
    status = io.status(now)
    assert (status.forced, status.analog_forced, status.digital.outputs) == ((), (), 0)
    assert not status.digital.inputs >> 9 & 0b11
    assert status.analog.outputs[1] == 0.0


def test_reset_clears_the_pins_of_a_machine(bench_of: Callable[[str], Bench]) -> None:
    bench = bench_of("grblhal_6axis")
    io = bench.live._cell.components["machine.io"]
    assert isinstance(io, VirtualIO)
    io.set_digital_output(3, True, 0)
    io.set_digital_input(5, True, 0)
    bench.do("reset", robot="machine")
    assert (io.digital().outputs, io.digital().inputs) == (0, 0)
