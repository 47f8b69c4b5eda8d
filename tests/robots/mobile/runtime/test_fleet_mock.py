"""The runtime over MOCK hardware: what it says is a function of the seed and of what it heard."""

import hashlib
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.robots.mobile.runtime.driven_fleet import DrivenFleet, robot_file

from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.graph import build_driver_graph
from understudy.robots.mobile.hardware import MockHardware, Surroundings
from understudy.units import NS_PER_SECOND

PROFILE = {
    "profileName": "busy",
    "world": {
        "obstacles": [{"id": "post", "x": 4.0, "y": 0.0, "radiusMeters": 0.2}],
        "barcodeMarkers": [{"code": "A-01", "x": 1.0, "y": 0.0, "yaw": 0.0, "type": "QR"}],
    },
    "faultInjection": {
        "rules": [{"trigger": "AFTER_SECONDS", "value": 20, "target": "motor:act_1"}]
    },
    "ioOverrides": {
        "estopScript": [{"atSeconds": 14, "pressed": True}, {"atSeconds": 15, "pressed": False}]
    },
}
SCANNER = {"correctsPose": True, "odometryDriftPercent": 2.0, "rangeMeters": 0.2}


class Mock(DrivenFleet):
    """Robots in MOCK mode."""

    def __init__(self, *changes: dict[str, Any], seed: int = 1, **options: Any) -> None:
        files = [robot_file(f"r{n}", **each) for n, each in enumerate(changes or ({},), 1)]
        layout = Layout(files)
        self.graph = build_driver_graph(layout, [Surroundings(seed=seed) for _ in files], print)
        super().__init__(layout, self.graph, seeds=[seed] * len(files), **options)

    @property
    def mock(self) -> MockHardware:
        found = self.graph.mock
        assert found is not None
        return found


def busy(**options: Any) -> Mock:
    changes = {"runtime__simulationProfile": PROFILE, "io__devices__1__config": SCANNER}
    return Mock(changes, changes | {"runtime__tickHz": 60}, **options)


SCRIPT: list[tuple[float, str, str, dict[str, Any]]] = [
    (0.5, "r1", "MOVE_TO_POSE", {"x": 2.5, "y": 0.5}),
    (0.5, "r2", "MOVE_VELOCITY", {"linear": 0.8}),
    (2.0, "r1", "EXECUTE_ACTION", {"motorId": "act_1", "targetPosition": 0.05}),
    (9.0, "r2", "STOP", {}),
    (13.5, "r1", "MOVE_VELOCITY", {"linear": -0.3}),
    (16.0, "r1", "MOVE_TO_POSE", {"x": 0.0, "y": 0.0, "yaw": 1.0}),
    (23.0, "r1", "RESET_MOTOR", {"motorId": "act_1"}),
]


def play(fleet: Mock, until: float, *, slices: int = 1) -> Mock:
    """Plays what is left of the script."""
    for at, robot, name, parameters in SCRIPT[fleet.sent :]:
        if at <= until:
            fleet.run(at - fleet.now / NS_PER_SECOND, slices)
            fleet.command(name, robot=robot, **parameters)
    return fleet.run(until - fleet.now / NS_PER_SECOND, slices)


def digest(fleet: Mock) -> str:
    return hashlib.sha256(fleet.data).hexdigest()


def test_the_script_meets_what_it_shall_meet() -> None:
    fleet = play(busy(), 30.0)
    assert set(fleet.events()) >= {
        "simulation.started",
        "barcode.scanned",
        "safety.estop.pressed",
        "safety.estop.cleared",
        "motor.fault",
        "command.done",
        "command.failed",
    }
    assert "safety.obstacle.detected" in fleet.events("r2")
    assert "motor.recovered" in fleet.events()


def test_the_same_seed_and_script_give_the_same_bytes_in_other_slices() -> None:
    assert digest(play(busy(), 25.0)) == digest(play(busy(), 25.0, slices=7))


def test_another_seed_or_run_gives_other_bytes() -> None:
    found = {digest(play(busy(seed=s, run_id=r), 3.0)) for s, r in ((1, "a"), (2, "a"), (1, "b"))}
    assert len(found) == 3


@pytest.mark.parametrize("at", [0.0, 1.99, 5.0, 14.2])
def test_a_snapshot_is_invisible(at: float) -> None:
    whole = play(busy(), at)
    saved = msgspec.json.encode([whole.fleet.save(), whole.graph.save()])
    other, before = busy(), len(whole.data)
    other.now, other.sent = whole.now, whole.sent
    play(whole, 25.0)
    fleet_state, hardware_state = msgspec.json.decode(saved)
    other.fleet.load(fleet_state)
    other.graph.load(hardware_state)
    play(other, 25.0)
    assert other.data == whole.data[before:]


def test_the_estimated_pose_is_the_true_one_without_drift() -> None:
    fleet = Mock().run(0.1)
    fleet.command("MOVE_TO_POSE", x=2.0, y=1.5, yaw=-1.0)
    fleet.run(15.0)
    assert fleet.acks()[-1] == "MOVE_TO_POSE:DONE"
    pose = fleet.state()["pose"]
    assert [pose["x"], pose["y"], pose["yaw"]] == pytest.approx(fleet.mock.pose(0), abs=1e-6)


def test_markers_correct_the_pose() -> None:
    world = {"barcodeMarkers": [{"code": f"M-{n}", "x": n, "y": 0.0, "yaw": 0.0} for n in (3, 6)]}
    profile = {"world": world}
    away = []
    for corrects in (False, True):
        config = SCANNER | {"correctsPose": corrects, "odometryDriftPercent": 5.0}
        fleet = Mock({"runtime__simulationProfile": profile, "io__devices__1__config": config})
        fleet.run(0.1)
        fleet.command("MOVE_VELOCITY", linear=1.0, durationSeconds=6.5)
        fleet.run(10.0)
        true, pose = fleet.mock.pose(0), fleet.state()["pose"]
        away.append(abs(pose["x"] - true[0]))
        assert fleet.events().count("barcode.scanned") == 2
    assert away[1] < away[0] / 2
    assert away[0] > 0.01


def test_an_idle_fleet_without_a_connection_sleeps_until_something_happens() -> None:
    fleet = busy(connect=False)
    wakes = 0
    while (wake := fleet.fleet.next_wake()) is not None and wake <= 30 * NS_PER_SECOND:
        fleet.now = wake
        fleet.run(0.0)
        wakes += 1
    fleet.run(30.0 - fleet.now / NS_PER_SECOND)
    assert 3 <= wakes < 60
    awake = busy(connect=False)
    for tick in range(30):
        awake.run(1.0, slices=3 + tick % 4)
    fleet.connect()
    awake.connect()
    assert digest(fleet.run(1.0)) == digest(awake.run(1.0))
    assert "motor.fault" in fleet.events()
    assert "safety.estop.pressed" in fleet.events()
    month = 30 * 24 * 3600.0
    sleeper = Mock(connect=False).run(month)
    sleeper.connect()
    assert sleeper.run(0.1).state()["batteryPercent"] == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_wheels_that_report_wrong_distances_do_not_keep_a_robot_from_its_goal(seed: int) -> None:
    fleet = Mock({"io__devices__1__config": {"odometryDriftPercent": 5.0}}, seed=seed).run(0.1)
    fleet.command("MOVE_TO_POSE", x=-2.0, y=0.3, yaw=0.5)
    fleet.run(10.0)
    assert fleet.acks()[-1] == "MOVE_TO_POSE:DONE"


WRONG = st.one_of(
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.none(),
    st.booleans(),
    st.text(max_size=3),
    st.just([]),
    st.just({}),
)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_wrong_snapshot_is_refused_or_does_no_harm(data: st.DataObject) -> None:
    """One value of a snapshot of driving robots is replaced."""
    tree = msgspec.json.decode(driven())
    place: Any = tree
    while isinstance(place, dict | list) and place:
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(place[key], dict | list) or not place[key]:
            place[key] = data.draw(WRONG)
            break
        place = place[key]
    restored = busy()
    try:
        restored.fleet.load(tree)
    except msgspec.ValidationError:
        return
    restored.now = 2 * NS_PER_SECOND
    restored.run(0.1)


@cache
def driven() -> bytes:
    fleet = play(busy(), 2.0)
    fleet.command("MOVE_TO_POSE", x=1.0, y=1.0)
    return msgspec.json.encode(fleet.fleet.save())


def test_a_robot_in_front_of_an_obstacle_drives_backwards_away_from_it() -> None:
    post = {"id": "post", "x": 2.0, "y": 0.0, "radiusMeters": 0.2}
    fleet = Mock({"runtime__simulationProfile": {"world": {"obstacles": [post]}}}).run(0.1)
    fleet.command("MOVE_VELOCITY", linear=0.5)
    assert fleet.run(6.0).state()["safetyStopReason"] == "OBSTACLE"
    stopped = fleet.mock.pose(0)[0]
    fleet.command("MOVE_VELOCITY", linear=0.3)
    assert fleet.run(0.1).acks()[-1] == "MOVE_VELOCITY:REJECTED:SAFETY_STOP_ACTIVE"
    fleet.command("MOVE_VELOCITY", linear=-0.3, durationSeconds=2.0)
    fleet.run(4.0)
    assert fleet.acks()[-1] == "MOVE_VELOCITY:DONE"
    assert fleet.mock.pose(0)[0] < stopped - 0.4
    assert fleet.state()["status"] == "RUNNING"
    fleet.command("MOVE_VELOCITY", linear=0.5)
    assert fleet.run(6.0).state()["safetyStopReason"] == "OBSTACLE"


def test_a_robot_between_two_obstacles_does_not_drive_into_the_one_behind() -> None:
    posts = [{"id": f"at{x}", "x": x, "y": 0.0, "radiusMeters": 0.2} for x in (2.0, -1.0)]
    fleet = Mock({"runtime__simulationProfile": {"world": {"obstacles": posts}}}).run(0.1)
    fleet.command("MOVE_VELOCITY", linear=0.5)
    fleet.run(6.0)
    fleet.command("MOVE_VELOCITY", linear=-0.5)
    fleet.run(6.0)
    assert fleet.acks()[-1] == "MOVE_VELOCITY:FAILED:SAFETY_STOP"
    assert fleet.mock.clearance(0) > 0.0
