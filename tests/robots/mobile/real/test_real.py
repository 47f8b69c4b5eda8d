"""REAL robots behind a PLC or at a serial port, against virtual devices, on virtual time."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.robots.mobile.real.virtual_device import LineDevice, ModbusDevice, VirtualDevice

from understudy.errors import ConfigError
from understudy.ports import UNLIMITED
from understudy.robots.mobile.config import read_robot_file
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.hardware_interface import MotorOutputs
from understudy.robots.mobile.real.hardware import RealHardware
from understudy.robots.mobile.real.registers import halves, line_of, number
from understudy.units import NS_PER_MS, NS_PER_SECOND

TICK = 20 * NS_PER_MS
ROWS = np.array([0], np.int64)
MOTORS = np.array([0, 1, 2], np.int64)
LEFT, RIGHT, GRIPPER = 0, 100, 200
LIDAR, SCANNER, BATTERY = 300, 310, 340
EXAMPLE = Path(__file__).parents[3] / "robots/mobile/config/robot_config.json"


DRIVERS: dict[str, tuple[dict[str, Any], type[VirtualDevice], str]] = {
    "PLC": ({"host": "plc.local"}, ModbusDevice, "tcp://plc.local:502"),
    "SERIAL": ({"device": "/dev/ttyUSB0"}, LineDevice, "serial:/dev/ttyUSB0@115200"),
}
"""Type → where it is, the device, and the address that a wire connects to."""
Change = Callable[[dict[str, Any]], None]


def place(kind: str, address: int) -> dict[str, Any]:
    return {"type": kind, "config": {**DRIVERS[kind][0], "address": address}}


def real_robot(kind: str, change: Change = lambda robot: None) -> Layout:
    robot = json.loads(EXAMPLE.read_text())
    robot["runtime"]["mode"] = "REAL"
    for motor, address in zip(robot["motors"], (LEFT, RIGHT, GRIPPER), strict=True):
        motor["driver"] = place(kind, address)
    for bit, point in enumerate(robot["io"]["digitalInputs"]):
        point["driver"] = place(kind, bit)
    for bit, point in enumerate(robot["io"]["digitalOutputs"]):
        point["driver"] = place(kind, bit)
    robot["io"]["devices"].append({"deviceId": "battery", "type": "BATTERY"})
    for device, address in zip(robot["io"]["devices"], (LIDAR, SCANNER, BATTERY), strict=True):
        device["driver"] = place(kind, address)
    change(robot)
    return Layout([read_robot_file(json.dumps(robot), "robot_config.json")])


@pytest.fixture(params=DRIVERS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


class Bench:
    """The hardware of a robot with a device at the other end of its line."""

    def __init__(self, kind: str, change: Change = lambda robot: None) -> None:
        self.device = DRIVERS[kind][1](
            (LEFT, RIGHT, GRIPPER), ((LIDAR, 3), (SCANNER, 19), (BATTERY, 2))
        )
        self.log: list[str] = []
        self.hardware = RealHardware(real_robot(kind, change), [0], self.log.append)
        ((where, self.driver),) = self.hardware.callers().items()
        assert where == DRIVERS[kind][2]
        self.now = 0
        self.silent = False

    def connect(self) -> "Bench":
        self.driver.wake(self.now)
        assert self.driver.wanted() is not None
        self.driver.connected(self.now)
        return self

    def tick(self, count: int = 1) -> "Bench":
        for _ in range(count):
            self.now += TICK
            self.device.run(TICK / NS_PER_SECOND)
            at = self.driver.next_wake()
            if at is not None and at <= self.now:
                self.driver.wake(self.now)
            self.hardware.begin(self.now)
            self.hardware.step(ROWS, TICK / NS_PER_SECOND)
            while not self.silent and (request := self.driver.take(UNLIMITED)):
                for byte in self.device.answer(request):  # an answer may come in pieces
                    self.driver.receive(bytes([byte]), self.now)
        return self

    def order(self, *, speed: float = 0.0, target: float = 0.0, moving: bool = False) -> None:
        speeds = np.array([speed, speed, 0.0])
        targets, moves = np.array([0.0, 0.0, target]), np.array([False, False, moving])
        self.hardware.motors.write(MOTORS, MotorOutputs(speeds, targets, np.full(3, 1e-3), moves))


def enabled(bench: Bench) -> Bench:
    bench.hardware.io.write_outputs(np.array([0], np.int64), np.array([True]))
    return bench


@given(st.floats(-2e5, 2e5))
def test_a_number_keeps_a_tenth_of_a_millimetre(value: float) -> None:
    assert number(halves(value)) == pytest.approx(value, abs=0.51e-4)


def test_a_number_that_is_too_large_is_clipped() -> None:
    assert number(halves(1e12)) == pytest.approx(214_748.3647)
    assert number(halves(-1e12)) == pytest.approx(-214_748.3647)


def test_without_motor_enable_nothing_turns(kind: str) -> None:
    bench = Bench(kind).connect()
    bench.order(speed=0.5)
    bench.tick(50)
    assert bench.hardware.motors.read(MOTORS).velocity[:2] == pytest.approx([0.0, 0.0])
    assert not bench.device.coils[0]


def test_a_fault_of_a_drive_is_read_and_reset(kind: str) -> None:
    bench = enabled(Bench(kind).connect()).tick(3)
    bench.device.fail(LEFT, 17)
    bench.tick(2)
    assert bench.hardware.motors.read(MOTORS).faulty.tolist() == [True, False, False]
    fault = bench.hardware.motors.fault(0)
    assert fault is not None
    assert fault.code == "DEVICE_17"
    bench.tick(50)
    assert bench.hardware.motors.reset(0, bench.now) is None
    bench.tick(4)
    assert bench.hardware.motors.fault(0) is None
    assert not bench.device.holding[LEFT] & 4, "the reset bit is taken back"


def test_inputs_are_read_inverted_ones_too(kind: str) -> None:
    def invert(robot: dict[str, Any]) -> None:
        robot["io"]["digitalInputs"][0]["inverted"] = True

    bench = Bench(kind, invert).connect()
    bench.device.discrete[1] = True
    bench.tick(2)
    rows = np.array([0, 1, 2], np.int64)
    assert bench.hardware.io.read_inputs(rows).tolist() == [True, True, False]
    assert bench.hardware.io.inputs_connected(rows).all()


def test_sensors_are_read(kind: str) -> None:
    bench = Bench(kind).connect()
    bench.device.inputs |= {LIDAR: 1, LIDAR + 1: 1500, LIDAR + 2: 0xFFFF}
    bench.device.inputs |= {BATTERY: 1, BATTERY + 1: 7350, SCANNER: 1}
    bench.tick(2)
    lidar = bench.hardware.sensors.read_lidars(np.array([0], np.int64))
    nearest = bench.hardware.sensors.nearest(np.array([0], np.int64))
    assert (nearest[0], lidar.ahead[0], lidar.connected[0]) == (1.5, np.inf, True)
    assert bench.hardware.read_robots(ROWS).battery_percent[0] == 73.5
    assert bench.hardware.sensors.take_scans() == [], "what was read before is no news"
    bench.device.inputs |= {
        SCANNER + 1: 1,
        SCANNER + 2: 4,
        SCANNER + 3: 0x412D,
        SCANNER + 4: 0x3031,
    }
    bench.tick(2)
    (scan,) = bench.hardware.sensors.take_scans()
    assert scan.code == "A-01"
    assert bench.hardware.sensors.take_scans() == []


@pytest.mark.parametrize("word", [0x0009, 0x0101, 0x8001, 0xFFFD, 0x0000])
def test_a_status_word_that_is_not_known_is_not_ready(kind: str, word: int) -> None:
    bench = enabled(Bench(kind).connect()).tick(3)
    assert bench.hardware.motors.read(MOTORS).connected.all()
    for address in (LEFT, LIDAR, SCANNER, BATTERY):
        bench.device.inputs[address] = word
    bench.tick(3)
    assert bench.hardware.motors.read(MOTORS).connected.tolist() == [False, True, True]
    sensors = bench.hardware.sensors
    assert not sensors.connected(np.arange(2)).any()


def test_a_battery_has_at_most_100_percent_and_keeps_its_charge_while_it_is_silent(
    kind: str,
) -> None:
    bench = Bench(kind).connect()
    for register, percent in ((0xFFFF, 100.0), (1250, 12.5)):
        bench.device.inputs |= {BATTERY: 1, BATTERY + 1: register}
        assert bench.tick(2).hardware.read_robots(ROWS).battery_percent[0] == percent
    bench.silent = True
    assert bench.tick(40).hardware.read_robots(ROWS).battery_percent[0] == 12.5


def test_a_number_of_any_length_ends_the_connection() -> None:
    bench = Bench("SERIAL").connect()
    bench.silent = True
    bench.tick()
    number, _, _ = bench.driver.take(UNLIMITED).decode().partition(" ")
    bench.driver.receive(line_of(f"{number} OK {'9' * 5000}"), bench.now)
    assert "a register has 16 bits" in bench.log[-1]


def test_a_lidar_that_does_not_answer_sees_no_way_ahead(kind: str) -> None:
    bench = Bench(kind).connect()
    lidar = bench.tick(2).hardware.sensors.read_lidars(np.array([0], np.int64))
    assert (lidar.ahead[0], lidar.connected[0]) == (0.0, False), "its status word says not ready"


def test_a_silent_plc_is_not_connected_after_half_a_second_and_called_again(kind: str) -> None:
    bench = enabled(Bench(kind).connect()).tick(5)
    bench.silent = True
    bench.tick(30)
    assert not bench.hardware.motors.read(MOTORS).connected.any()
    assert "no answer in time" in bench.log[-1]
    bench.silent = False
    bench.tick(60)
    assert bench.driver.wanted() is not None
    bench.driver.connected(bench.now)
    assert bench.tick(2).hardware.motors.read(MOTORS).connected.all()


def test_the_cycle_counter_changes_with_every_cycle(kind: str) -> None:
    bench = Bench(kind).connect()
    counters = {bench.tick().device.holding[LEFT + 13] for _ in range(10)}
    assert len(counters) == 10


def test_registers_that_the_plc_does_not_have_are_named_once(kind: str) -> None:
    def move(robot: dict[str, Any]) -> None:
        robot["motors"][1]["driver"]["config"]["address"] = 900

    bench = Bench(kind, move).connect().tick(20)
    (line,) = [line for line in bench.log if "refuses a read" in line]
    assert line.startswith(f"{DRIVERS[kind][2]}: it refuses a read of unit 1, address 900: ")
    assert line.endswith(" 2")
    assert bench.hardware.motors.read(MOTORS).connected.tolist() == [True, False, True]


@pytest.mark.parametrize("kind", DRIVERS)
@given(data=st.binary(min_size=1, max_size=600))
def test_garbage_ends_the_connection_and_nothing_else(kind: str, data: bytes) -> None:
    bench = Bench(kind).connect()
    bench.silent = True
    bench.tick()
    bench.driver.receive(data, bench.now)
    bench.tick(40)
    assert bench.driver.status(bench.now).connection in ("waiting", "connecting")
    assert not bench.hardware.motors.read(MOTORS).connected.any()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda motor: motor["driver"].update(type="MOCK"), "in REAL mode: PLC, SERIAL, CANOPEN"),
        (lambda motor: motor["driver"].update(type="CANOPEN"), "motors.drive_left.driver.config"),
        (lambda motor: motor["driver"]["config"].pop("host"), "motors.drive_left.driver.config"),
        (lambda motor: motor["driver"]["config"].update(adress=3), "did you mean 'address'"),
    ],
)
def test_a_driver_that_cannot_be_built_is_named(
    change: Callable[[dict[str, Any]], None], says: str
) -> None:
    layout = real_robot("PLC", lambda robot: change(robot["motors"][0]))
    with pytest.raises(ConfigError) as problem:
        RealHardware(layout, [0], print)
    assert says in str(problem.value)
