"""What an operator sees of mobile robots: columns of all of them, and one robot in detail."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.fleet_interface import (
    FLAGS,
    Bytes,
    FleetColumns,
    FleetRobot,
    HoldReading,
    MotorReading,
    Signal,
)
from understudy.robots.mobile.hardware_interface import TimedHardware
from understudy.robots.mobile.runtime.messages import MotorState
from understudy.robots.mobile.runtime.reports import STILL, find_sound
from understudy.robots.mobile.runtime.robot import Robot
from understudy.robots.mobile.runtime.table import UNLIMITED, Codes, Flags, Floats, Table, rows_of
from understudy.robots.mobile.runtime.tick import OFFLINE, POSE
from understudy.robots.mobile.runtime.ticker import Ticker

BIT = {name: 1 << number for number, name in enumerate(FLAGS)}


def columns_of(tickers: Sequence[Ticker], count: int, hardware: TimedHardware) -> FleetColumns:
    """The tables of all tickers in the order of the layout."""
    found = FleetColumns(
        pose=np.zeros((count, 3), dtype=np.float32),
        speed=np.zeros(count, dtype=np.float32),
        goal=np.full((count, 3), np.nan, dtype=np.float32),
        battery=np.zeros(count, dtype=np.uint8),
        status=np.zeros(count, dtype=np.uint8),
        stop=np.zeros(count, dtype=np.uint8),
        flags=np.zeros(count, dtype=np.uint8),
    )
    for ticker in tickers:
        table, rows = ticker.table, ticker.table.robots
        found.pose[rows] = table.pose
        found.speed[rows] = table.speeds[:, 0]
        going = table.mode == POSE
        found.goal[rows[going]] = table.goal[going, :3]
        found.battery[rows] = np.rint(hardware.read_robots(rows).battery_percent)
        found.status[rows] = np.where(table.status < 0, OFFLINE, table.status)
        found.stop[rows] = table.stop
        found.flags[rows] = _flags(table, ticker.robots)
    return found


class Drawn(NamedTuple):
    """Poses as the robots believe them, codes of `STATUSES`, and whether they move."""

    poses: Floats
    statuses: Codes
    moving: Flags


def drawn_of(tickers: Sequence[Ticker], count: int) -> Drawn:
    found = Drawn(
        np.zeros((count, 3)), np.zeros(count, dtype=np.int8), np.zeros(count, dtype=np.bool_)
    )
    for ticker in tickers:
        table, rows = ticker.table, ticker.table.robots
        found.poses[rows] = table.pose
        found.statuses[rows] = np.where(table.status < 0, OFFLINE, table.status)
        found.moving[rows] = np.abs(table.speeds[:, [0, 2]]).max(axis=1) > STILL
    return found


def _flags(table: Table, robots: Sequence[Robot]) -> Bytes:
    flags = np.zeros(table.size, dtype=np.uint8)
    flags[table.estop] |= BIT["estop"]
    flags[~find_sound(table, slice(None))] |= BIT["fault"]
    flags[table.blocked] |= BIT["blocked"]
    flags[table.traffic_hold] |= BIT["held"]
    flags[[robot.executor.active is not None for robot in robots]] |= BIT["busy"]
    flags[[robot.tasks.is_active for robot in robots]] |= BIT["task"]
    flags[[file.runtime.mode == "REAL" for file in table.files]] |= BIT["real"]
    return flags


def reading_of(robot: Robot, layout: Layout, row: int, hardware: TimedHardware) -> FleetRobot:
    """A robot in detail; `true_pose` and `lidar` are left empty."""
    state, report = robot.reports.state(), robot.reports
    nearest = report.nearest
    inputs, outputs, devices = _signals(layout, row, hardware)
    return FleetRobot(
        name=robot.file.identity.robot_id,
        status=state.status,
        stop=state.safety_stop_reason or "",
        estop=state.estop_pressed,
        pose=(state.pose.x, state.pose.y, state.pose.yaw),
        true_pose=None,
        velocity=(state.velocity.linear, state.velocity.angular),
        battery=state.battery_percent,
        localization=state.localization_status,
        nearest=nearest if nearest < UNLIMITED else None,
        braking_distance=report.braking_distance(),
        faults=[f"{fault.code}: {fault.message}" for fault in state.faults],
        motors=list(_motors(robot, state.motors)),
        inputs=inputs,
        outputs=outputs,
        devices=devices,
        queue=robot.executor.readings(),
        tasks=robot.tasks.readings(),
        hold=_hold(robot),
        route=robot.tasks.steps.way_left() if robot.tasks.is_active else [],
        lidar=[],
    )


def _hold(robot: Robot) -> HoldReading:
    state, fastest = robot.node_hold.state, robot.reports.speed_limit
    return HoldReading(
        node=state.node_id,
        active=state.active,
        standing=state.standing,
        at_node=robot.tasks.steps.node_id,
        max_speed=fastest if fastest < UNLIMITED else None,
    )


def _motors(robot: Robot, states: dict[str, MotorState]) -> Iterator[MotorReading]:
    for motor in robot.file.motors:
        state = states[motor.motor_id]
        fault = [text for text in (state.fault_code, state.fault_message) if isinstance(text, str)]
        yield MotorReading(
            motor.motor_id, motor.role, state.mode, state.connected, state.position,
            state.velocity, ": ".join(fault),
        )  # fmt: skip


def _signals(
    layout: Layout, row: int, hardware: TimedHardware
) -> tuple[list[Signal], list[Signal], list[Signal]]:
    """Inputs, outputs and devices of a robot."""
    ins = [(n, each.point) for n, each in enumerate(layout.inputs) if each.robot == row]
    outs = [(n, each.point) for n, each in enumerate(layout.outputs) if each.robot == row]
    devs = [(n, each.device) for n, each in enumerate(layout.devices) if each.robot == row]
    in_rows, out_rows, dev_rows = (rows_of([n for n, _ in each]) for each in (ins, outs, devs))
    io = hardware.io
    in_values = zip(io.read_inputs(in_rows), io.inputs_connected(in_rows), strict=True)
    return (
        [
            Signal(point.io_id, point.role, bool(on), bool(there))
            for (_, point), (on, there) in zip(ins, in_values, strict=True)
        ],
        [
            Signal(point.io_id, point.role, bool(on))
            for (_, point), on in zip(outs, io.read_outputs(out_rows), strict=True)
        ],
        [
            Signal(device.device_id, device.type, bool(there), bool(there))
            for (_, device), there in zip(devs, hardware.sensors.connected(dev_rows), strict=True)
        ],
    )
