"""Hardware of MOCK robots: motors, inputs, outputs, faults, battery and snapshots."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.robots.mobile.rig import PROFILE, Rig, robot

from understudy.errors import Refused
from understudy.robots.mobile.config.layout import wheels_of
from understudy.robots.mobile.hardware import PERCENT_PER_METRE, PERCENT_PER_SECOND, Surroundings
from understudy.robots.mobile.hardware_interface import KnowsMap, MotorLimits, Rests, TimedHardware
from understudy.robots.mobile.wheels import displacements, move_on_arcs
from understudy.robots.mobile.world import Circle

FAULT = {"trigger": "AFTER_SECONDS", "value": 1, "target": "drive"}
FAULTS = f"{PROFILE}.faultInjection.rules"


def rig(changes: dict[str, Any] | None = None) -> Rig:
    return Rig([robot(changes)])


def test_it_is_what_the_runtime_uses() -> None:
    hardware = rig().hardware
    used: TimedHardware = hardware
    knows: KnowsMap = hardware
    assert isinstance(used, Rests)
    assert len(knows.obstacles(0).circles) == 0


# ── driving ─────────────────────────────────────────────────────────────────────────────────────


def test_set_speeds_of_the_wheels_move_the_body_within_their_limits() -> None:
    made = rig()
    made.speed[:2] = 1.0, 1.0
    made.run(1.0)
    assert made.hardware.velocity(0) == pytest.approx((0.8, 0.0, 0.0))
    made.run(4.0)
    x, y, yaw = made.hardware.pose(0)
    assert (x, y, yaw) == pytest.approx((5.0 - 0.625, 0.0, 0.0), abs=1e-3)
    readings = made.hardware.motors.read(made.motors)
    assert readings.position[:2] == pytest.approx([x, x])
    assert readings.velocity[:2] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("model", ["differential", "mecanum", "ackermann"])
def test_odometry_from_the_wheels_finds_the_true_pose(model: str) -> None:
    wheel = robot().motors[0]
    names = ["front_left", "front_right", "rear_left", "rear_right"]
    motors = [msgspec.structs.replace(wheel, motor_id=n, function_key=n.upper()) for n in names]
    chosen = motors if model == "mecanum" else motors[2:]
    file = msgspec.structs.replace(robot({f"{PROFILE}.driveModel": model}), motors=tuple(chosen))
    made = Rig([file], [Surroundings(pose=(1.0, 2.0, 0.5))])
    wheels, pose, moved = wheels_of(made.layout), np.array([(1.0, 2.0, 0.5)]), np.zeros((1, 3))
    for speeds in ([0.9, 0.7], [-0.4, 0.5], [0.2, 0.2]):
        made.speed[:] = speeds * (len(chosen) // 2)
        for _ in range(40):
            before = made.hardware.motors.read(made.motors).position
            made.run(0.02)
            after = made.hardware.motors.read(made.motors).position
            displacements(wheels, before, after, moved)
            move_on_arcs(moved, pose)
    assert pose[0] == pytest.approx(made.hardware.pose(0), abs=1e-9)


def test_the_wheels_report_a_wrong_distance_if_odometry_drifts() -> None:
    drift = {"io.devices.1.config": {"odometryDriftPercent": 5}}
    files = [robot(drift, "robot-1"), robot(drift, "robot-2"), robot({}, "robot-3")]
    made = Rig(files, [Surroundings(seed=3)] * 3)
    made.speed[[0, 1, 3, 4, 6, 7]] = 1.0
    made.run(10.0)
    rolled = made.hardware.motors.read(made.motors).position / made.hardware.pose(0)[0] - 1.0
    assert len(set(rolled[[0, 1, 3, 4]].tolist())) == 4, "every wheel drifts in its own way"
    assert 0.0 < np.abs(rolled[[0, 1, 3, 4]]).max() <= 0.05
    assert rolled[6] == 0.0


def test_limits_from_settings_count_at_once() -> None:
    made = rig()
    made.speed[:2] = 1.0
    wheels = np.array([0, 1])
    limits = MotorLimits(np.array([0.4, 1.0]), np.array([0.2, 0.2]), np.array([1.0, 1.0]))
    made.hardware.motors.set_limits(wheels, limits)
    made.run(1.0)
    assert made.hardware.velocity(0)[0] == pytest.approx(0.2)
    made.run(5.0)
    assert made.hardware.velocity(0)[0] == pytest.approx(0.4)


def test_motors_that_are_not_enabled_brake_and_stay() -> None:
    made = rig()
    made.speed[:2], made.target[2], made.moving[2] = 1.0, 0.08, True
    made.run(1.0)
    made.write_outputs(False)
    start, gripper = made.hardware.pose(0)[0], made.hardware.motors.state[2, 0]
    made.run(2.0)
    assert made.hardware.velocity(0) == (0.0, 0.0, 0.0)
    assert made.hardware.pose(0)[0] - start == pytest.approx(0.8**2 / 2, abs=1e-9)
    assert made.hardware.motors.state[2, 0] - gripper < 0.05**2 / 2 / 0.12 + 1e-3
    made.write_outputs(True)
    assert made.run(0.1).hardware.velocity(0)[0] > 0.0


def test_a_robot_without_a_track_follows_the_command() -> None:
    made = rig({"dimensions.trackWidthMm": None})
    made.speed[:2] = -0.2, 0.2
    made.run(0.02)
    assert made.hardware.velocity(0)[2] == pytest.approx(0.4 / 0.65), "no ramp"


# ── axes and limit switches ─────────────────────────────────────────────────────────────────────


def test_limit_switches_follow_the_axis() -> None:
    made = rig({"io.digitalInputs.2.inverted": True}).run(0.1)
    assert made.inputs() == {"estop": False, "act_1_min": True, "act_1_max": False}
    made.target[2], made.moving[2] = 0.04, True
    assert made.run(2.0).inputs() == {"estop": False, "act_1_min": False, "act_1_max": False}
    made.target[2] = 0.1
    assert made.run(2.0).inputs() == {"estop": False, "act_1_min": False, "act_1_max": True}
    assert made.hardware.motors.read(made.motors).position[2] == pytest.approx(0.08), "its bound"


def test_noise_of_limit_switches_is_as_frequent_as_written_and_repeatable() -> None:
    noise = {f"{PROFILE}.ioOverrides.limitSensorNoise": {"enabled": True, "probability": 0.2}}

    def wrong(seed: int) -> list[tuple[bool, bool]]:
        made, found = Rig([robot(noise)], [Surroundings(seed=seed)]), []
        for _ in range(2000):
            inputs = made.run(0.02).inputs()
            found.append((not inputs["act_1_min"], inputs["act_1_max"]))
        return found

    first = wrong(1)
    for values in zip(*first, strict=True):
        assert sum(values) == pytest.approx(400, abs=70)
    assert sum(low and high for low, high in first) == pytest.approx(80, abs=40), "independent"
    assert wrong(1) == first
    assert wrong(2) != first
    assert all(low and high for low, high in wrong_always())


def wrong_always() -> list[tuple[bool, bool]]:
    noise = {f"{PROFILE}.ioOverrides.limitSensorNoise": {"enabled": True, "probability": 1.0}}
    made, found = rig(noise), []
    for _ in range(20):
        inputs = made.run(0.02).inputs()
        found.append((not inputs["act_1_min"], inputs["act_1_max"]))
    return found


# ── inputs ──────────────────────────────────────────────────────────────────────────────────────


def test_the_emergency_stop_follows_its_script_on_all_its_inputs() -> None:
    script = [{"atSeconds": 1, "pressed": True}, {"atSeconds": 1.5, "pressed": False}]
    second = {"ioId": "estop_rear", "role": "ESTOP"}
    made = rig({f"{PROFILE}.ioOverrides.estopScript": script, "io.digitalInputs.+": second})
    pressed = []
    for _ in range(100):
        inputs = made.run(0.02).inputs()
        assert inputs["estop"] == inputs["estop_rear"]
        pressed.append(inputs["estop"])
    assert (pressed.index(True), sum(pressed)) == (49, 25)


def test_an_operator_presses_the_emergency_stop_and_sets_other_inputs() -> None:
    hold = {"ioId": "hold", "role": "TRAFFIC_HOLD"}
    made = Rig([robot({"io.digitalInputs.+": hold}, "a"), robot({}, "b")])
    made.hardware.press_estop(1, True)
    assert made.hardware.io.read_inputs(np.array([0, 4])).tolist() == [False, True]
    assert made.hardware.set_input(0, "hold", True) is None
    assert made.run(0.1).hardware.io.read_inputs(np.array([3])).tolist() == [True]
    assert made.hardware.set_input(0, "act_1_min", False) is None
    assert not made.run(0.1).hardware.io.read_inputs(np.array([1]))[0]
    assert made.hardware.set_input(0, "act_1_min", None) is None
    assert made.run(0.1).hardware.io.read_inputs(np.array([1]))[0]
    assert isinstance(made.hardware.set_input(1, "hold", True), Refused)


# ── faults ──────────────────────────────────────────────────────────────────────────────────────


def test_a_fault_of_the_drive_stops_it_with_its_deceleration_until_it_is_reset() -> None:
    made = rig({FAULTS: [{**FAULT, "faultCode": "OVERHEAT"}]})
    made.speed[:2] = 0.8
    made.run(0.98)
    motors, start = made.hardware.motors, made.hardware.pose(0)[0]
    speed = made.hardware.velocity(0)[0]
    assert not motors.read(made.motors).faulty.any()
    made.run(2.0)
    readings = motors.read(made.motors)
    assert readings.faulty.tolist() == [True, True, False]
    assert readings.connected.all()
    assert made.hardware.pose(0)[0] - start == pytest.approx(speed**2 / 2, abs=1e-3)
    fault = motors.fault(0)
    assert fault is not None
    assert (fault.code, fault.message) == ("OVERHEAT", "simulated fault at 1 s")
    assert motors.fault(2) is None
    for row in (0, 1):
        assert motors.reset(row, made.now) is None
    assert made.run(0.1).hardware.velocity(0)[0] > 0.0


def test_a_reset_waits_for_the_cooldown_and_may_be_forbidden() -> None:
    rules = [{**FAULT, "target": "motor:act_1"}, FAULT]
    made = rig({FAULTS: rules, "motors.0.resetPolicy": {"allowReset": False}}).run(1.5)
    motors = made.hardware.motors
    assert motors.reset(2, made.now) == Refused("RESET_COOLDOWN: 1.50 s left")
    assert motors.reset(2, 2_999_999_999) == Refused("RESET_COOLDOWN: 0.00 s left")
    assert motors.reset(2, 3_000_000_000) is None
    assert motors.reset(2, 3_000_000_000) is None, "nothing to reset"
    assert motors.reset(0, made.now) == Refused("RESET_NOT_ALLOWED")
    assert motors.reset(1, 2_000_000_000) is None


def test_a_wheel_with_a_fault_is_dragged_along_until_the_runtime_stops_the_other() -> None:
    made = rig({FAULTS: [{**FAULT, "target": "motor:drive_left"}]})
    made.speed[:2] = 0.5
    made.run(3.0)
    readings = made.hardware.motors.read(made.motors)
    assert readings.velocity[:2] == pytest.approx([0.0, 0.5])


def test_an_input_with_a_fault_is_not_connected_and_keeps_its_value() -> None:
    made = rig({FAULTS: [{**FAULT, "target": "io:act_1_min"}, {**FAULT, "target": "io:estop"}]})
    made.run(1.0)
    made.target[2], made.moving[2] = 0.05, True
    made.hardware.press_estop(0, True)
    inputs = made.run(2.0).inputs()
    assert made.hardware.io.inputs_connected(np.arange(3)).tolist() == [False, False, True]
    assert inputs == {"estop": False, "act_1_min": True, "act_1_max": False}
    made.hardware.faults.repair(0, "io:act_1_min")
    assert not made.run(0.02).inputs()["act_1_min"]


def test_an_output_with_a_fault_keeps_its_value() -> None:
    made = rig({FAULTS: [{**FAULT, "target": "io:motor_enable"}]})
    made.speed[:2] = 0.5
    made.run(1.0)
    made.write_outputs(False)
    assert made.hardware.io.read_outputs(np.arange(1)).tolist() == [True]
    assert made.run(1.0).hardware.velocity(0)[0] == pytest.approx(0.5)


def test_faults_come_with_commands_as_often_as_written() -> None:
    rule = {"trigger": "ON_COMMAND", "value": "MOVE_TO_POSE", "target": "drive", "probability": 0.3}
    files = [robot({FAULTS: [rule]}, name) for name in ("a", "b")]

    def outcomes(rows: list[int], seed: int = 5) -> list[bool]:
        made = Rig([files[row] for row in rows], [Surroundings(seed=seed)] * len(rows))
        found = []
        for _ in range(300):
            made.hardware.command_started(0, "MOVE_VELOCITY", 0)
            assert made.hardware.motors.fault(0) is None
            made.hardware.command_started(0, "MOVE_TO_POSE", 0)
            found.append(made.hardware.motors.fault(0) is not None)
            made.hardware.faults.repair(0, "drive")
        return found

    first = outcomes([0])
    assert sum(first) == pytest.approx(90, abs=30)
    assert outcomes([0, 1]) == first, "another robot changes nothing"
    assert outcomes([1]) != first, "robotId is part of the name of every draw"
    assert outcomes([0], seed=6) != first


def test_a_rule_after_seconds_with_a_probability_is_drawn_once() -> None:
    rules = [{**FAULT, "probability": 0.5}]
    files = [robot({FAULTS: rules}, f"r{n}") for n in range(100)]
    made = Rig(files).run(2.0)
    faulty = made.hardware.motors.read(made.motors).faulty.reshape(100, 3)
    assert int(faulty[:, 0].sum()) == pytest.approx(50, abs=20)
    assert (faulty[:, 0] == faulty[:, 1]).all()


def test_an_operator_injects_and_repairs_faults() -> None:
    made = rig()
    made.hardware.inject_fault(0, "motor:act_1", "JAMMED")
    fault = made.hardware.motors.fault(2)
    assert fault is not None
    assert fault.code == "JAMMED"
    made.hardware.faults.repair(0, "motor:act_1")
    assert made.hardware.motors.fault(2) is None


# ── battery ─────────────────────────────────────────────────────────────────────────────────────


def test_the_battery_drains_with_time_and_metres() -> None:
    made = rig()
    made.run(10.0)
    assert made.battery() == pytest.approx(80.0 - 10.0 * PERCENT_PER_SECOND)
    made.speed[:2] = 1.0
    made.run(10.0)
    metres = made.hardware.pose(0)[0]
    expected = 80.0 - 20.0 * PERCENT_PER_SECOND - metres * PERCENT_PER_METRE
    assert made.battery() == pytest.approx(expected)


def test_an_empty_battery_leaves_the_motors_without_connection() -> None:
    made = rig()
    made.speed[:2] = 1.0
    made.run(2.0)
    made.hardware.set_battery(0, 0.0)
    made.run(2.0)
    assert made.battery() == 0.0
    assert made.hardware.velocity(0) == (0.0, 0.0, 0.0)
    assert not made.hardware.motors.read(made.motors).connected.any()
    made.hardware.set_battery(0, 50.0)
    made.run(0.1)
    assert made.battery() == pytest.approx(50.0, abs=0.01)
    assert made.hardware.velocity(0)[0] > 0.0


# ── places ──────────────────────────────────────────────────────────────────────────────────────


def test_a_robot_starts_where_the_cell_or_its_profile_says() -> None:
    file = robot({f"{PROFILE}.initialState.pose": {"x": 3, "y": 4, "yaw": 1}})
    made = Rig([file, file], [Surroundings(), Surroundings(pose=(1.0, 1.0, 0.0))])
    assert made.hardware.pose(0) == (3.0, 4.0, 1.0)
    assert made.hardware.pose(1) == (1.0, 1.0, 0.0)


def test_outline_and_clearance_are_those_of_the_true_pose() -> None:
    post = Circle("post", 2.0, 0.0, 0.25)
    made = Rig([robot()], [Surroundings((0.5, 0.0, np.pi / 2), (post,))])
    corners = made.hardware.outline(0)
    assert corners.min(axis=0) == pytest.approx([0.5 - 0.325, -0.45])
    assert corners.max(axis=0) == pytest.approx([0.5 + 0.325, 0.45])
    assert made.hardware.clearance(0) == pytest.approx(2.0 - 0.25 - 0.825)
    assert Rig([robot()]).hardware.clearance(0) == np.inf


# ── many robots and snapshots ───────────────────────────────────────────────────────────────────


def busy(name: str) -> Any:
    """A robot with everything that a profile can have."""
    cart = {"id": "c", "x": 6, "y": 0, "radiusMeters": 1}
    script = [
        {"atSeconds": 0.5, "action": "spawn", "obstacle": cart},
        {"atSeconds": 1, "action": "move", "id": "c", "x": 3, "y": 1, "overSeconds": 2},
    ]
    rules = [
        {"trigger": "AFTER_SECONDS", "value": 2.5, "target": "motor:act_1", "probability": 0.5},
        {"trigger": "ON_COMMAND", "value": "MOVE_TO_POSE", "target": "drive", "probability": 0.5},
    ]
    markers = [{"code": f"M{n}", "x": n / 4, "y": 0.05, "yaw": 0.1} for n in range(20)]
    return robot(
        {
            f"{PROFILE}.scripts": {
                "obstacles": script,
                "barcodes": [{"atSeconds": 2, "code": "S"}],
            },
            f"{PROFILE}.world.barcodeMarkers": markers,
            FAULTS: rules,
            f"{PROFILE}.ioOverrides": {
                "estopScript": [{"atSeconds": 1.1, "pressed": True}],
                "limitSensorNoise": {"enabled": True, "probability": 0.1},
            },
            "io.devices.1.config": {"correctsPose": True, "odometryDriftPercent": 2},
        },
        name,
    )


def drive_busily(made: Rig, row: int, seconds: float) -> bytes:
    """Everything that can be read of a robot, tick by tick."""
    found = []
    motors = made.layout.motor_rows(row)
    lidars = np.array([2 * row])
    for _ in range(round(seconds * 50)):
        phase = made.tick % 100 / 100.0
        made.speed[motors], made.target[motors] = (phase, 1.0 - phase, 0.0), 0.08 * phase
        made.moving[motors] = True
        made.hardware.sensors.set_motion(lidars, np.array([(0.5, 0.0, 1.0 - 2.0 * phase)]))
        if made.tick % 60 == 40:
            made.hardware.command_started(row, "MOVE_TO_POSE", made.now)
        if made.tick % 60 == 50:
            for motor in motors:
                made.hardware.motors.reset(int(motor), made.now)
        made.run(0.02)
        readings = made.hardware.motors.read(motors)
        scans = [
            (s.code, s.marker, s.seen)
            for s in made.hardware.sensors.take_scans()
            if s.row == 2 * row + 1
        ]
        inputs = made.hardware.io.read_inputs(np.arange(3 * row, 3 * row + 3))
        found.append(
            [
                made.hardware.pose(row),
                *(column.tolist() for column in readings),
                inputs.tolist(),
                *(column.tolist() for column in made.hardware.sensors.read_lidars(lidars)),
                made.hardware.sensors.nearest(lidars).tolist(),
                scans,
                made.hardware.read_robots(np.array([row])).battery_percent.tolist(),
                made.hardware.sensors.ranges(int(lidars[0])).tolist(),
            ]
        )
    return repr(found).encode()


def test_a_robot_does_the_same_alone_and_among_a_thousand() -> None:
    alone = Rig([busy("robot-7")], [Surroundings(seed=3)])
    files = [busy(f"robot-{n}") if n in (6, 7, 8) else robot({}, f"robot-{n}") for n in range(1000)]
    many = Rig(files, [Surroundings(seed=3)] * 1000)
    many.speed[:] = 0.3
    assert drive_busily(alone, 0, 4.0) == drive_busily(many, 7, 4.0)


@pytest.mark.parametrize("cut", [0.3, 1.5, 2.02, 3.3])
def test_a_snapshot_in_the_middle_changes_nothing(cut: float) -> None:
    def made() -> Rig:
        return Rig([busy("a")], [Surroundings(seed=3)])

    through = made()
    drive_busily(through, 0, cut)
    snapshot, tick = through.snapshot(), through.tick
    expected = drive_busily(through, 0, 3.0)
    again = made().restore(snapshot, tick)
    assert again.snapshot() == snapshot
    assert drive_busily(again, 0, 3.0) == expected
    assert again.snapshot() == through.snapshot()
    assert drive_busily(through.restore(snapshot, tick), 0, 3.0) == expected, "also when it ran on"


def test_a_snapshot_of_other_robots_is_refused() -> None:
    two = Rig([robot({}, "a"), robot({}, "b")])
    for snapshot in (two.snapshot(), rig({"motors.2": rig_motor()}).snapshot()):
        state = json.loads(snapshot)
        state["motors"]["columns"]["speed"].append(0.0)
        with pytest.raises(msgspec.ValidationError):
            rig().restore(json.dumps(state).encode(), 0)


def rig_motor() -> Any:
    return json.loads(msgspec.json.encode(robot().motors[2]))


# ── rest ────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_changes_before_the_next_change() -> None:
    made = Rig([busy("a")], [Surroundings(seed=3)])
    made.run(0.02)
    seen = []
    while made.tick < 250:
        due = made.hardware.next_change()
        assert due is not None
        before = state(made)
        made.run(0.02)
        if due > made.now:
            assert state(made) == before
            seen.append(made.tick)
    assert len(seen) > 50


def state(made: Rig) -> list[Any]:
    lidars, hardware = made.hardware.sensors.lidar_rows, made.hardware
    readings = (
        *hardware.motors.read(made.motors),
        *hardware.sensors.read_lidars(lidars),
        hardware.sensors.nearest(lidars),
    )
    return [*(column.tolist() for column in readings), made.inputs(), hardware.pose(0)]


def test_a_robot_without_scripts_rests_until_its_battery_is_empty() -> None:
    made = rig().run(0.2)
    due = made.hardware.next_change()
    assert due == pytest.approx(80.0 / PERCENT_PER_SECOND * 1e9, rel=1e-9)
    made.hardware.begin(due or 0)
    made.hardware.step(made.rows, 0.02)
    assert not made.hardware.motors.read(made.motors).connected.any()


def test_ticks_that_are_left_out_change_nothing() -> None:
    """A robot that stands goes from one change to the next in one step."""
    every, few = (Rig([busy("a")], [Surroundings(seed=3)]) for _ in range(2))
    every.run(5.0)
    few.run(0.02)
    while few.tick < every.tick:
        due = few.hardware.next_change() or 0
        before, few.tick = few.tick, max(-(-due * 50 // 1_000_000_000), few.tick + 1)
        few.tick = min(few.tick, every.tick)
        few.hardware.begin(few.now)
        few.hardware.step(few.rows, (few.tick - before) / 50)
    assert few.snapshot() == every.snapshot()
