"""An arm and a mobile robot in one proof, compared with the running cell and with many times."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.space.collision.timed_programs import compare, joints_at, pairs_of_times, random_program

from understudy.app.build import build_cell, repeatable_run
from understudy.app.validate_several import own_programs, validate_together
from understudy.app.virtual_run import start_program
from understudy.config import CellConfig, load_config
from understudy.config.files import ProgramFile
from understudy.errors import ConfigError
from understudy.offline.recorded_run import RecordedRun
from understudy.ports.operation import VehicleBody
from understudy.robots.mobile import recorded_runs
from understudy.robots.mobile.mission import mission_tasks, read_mission
from understudy.robots.mobile.wheels import moved_on_arc
from understudy.simulation import scenario
from understudy.simulation.scenario import Config as Rules
from understudy.space.collision.arm_pair import ArmPair, PlacedArm
from understudy.space.collision.two_robots import TimedRobot, prove_apart
from understudy.space.collision.vehicle import placed_vehicle
from understudy.space.collision.world import arm_parts
from understudy.space.kinematics.chain import Chain, chain
from understudy.space.model.urdf import read
from understudy.space.transform import Array, translation
from understudy.units import NS_PER_SECOND

BODY = VehicleBody(0.9, 0.65, 0.35, 0.0)
"""Of the shipped mobile robot `amr`."""


@cache
def dock() -> CellConfig:
    return load_config("dock")


def texts(**changes: tuple[str, str]) -> dict[str, str]:
    """The programs of the cell; of some robots with a text replaced."""
    found = {}
    for each in own_programs(dock()):
        old, new = changes.get(each.robot, ("", ""))
        assert old in str(each.text)
        found[each.robot] = str(each.text).replace(old, new) if old else str(each.text)
    return found


NO_PAUSE = {"g60": ("G4 P8", "G4 P1")}
"""The planted collision: the arm does not wait until the cart has left."""


def recorded(config: CellConfig, missions: dict[str, str | bytes]) -> dict[str, RecordedRun]:
    faults = scenario.build(Rules(), config.head.seed)
    return recorded_runs(config, missions, faults, repeatable_run(config))


class RunningDock:
    """The running cell, with the programs started at the time 0."""

    def __init__(self, programs: dict[str, str]) -> None:
        self.cell: Any = build_cell(dock())
        self.parts: Any = dict(self.cell.components)
        fleet = self.parts["fleet"]
        fleet.set_connected(True, 0)
        self.cell.advance(0)
        for task in mission_tasks(read_mission(programs["cart"]), "test"):
            assert fleet.request(0, "task.assign", task.payload, 0) is None
        if "g60" in programs:
            file = ProgramFile("arm.gcode", programs["g60"])
            assert start_program(dock(), self.cell, "g60", file) is None

    def pose(self) -> tuple[float, float, float]:
        pose: tuple[float, float, float] = self.parts["fleet.hardware"].place("cart")
        return pose

    def contacts(self) -> list[Any]:
        return list(self.parts["g60.collision"].uncleared())


def test_the_shipped_cell_is_proven_and_the_arm_may_not_be_early() -> None:
    for timing_s in (None, 1.0):
        arm, cart = validate_together(own_programs(dock()), dock(), timing_s=timing_s)
        assert arm.passed
        assert cart.passed
        assert (arm.robots[0].robot, cart.robots[0].robot) == ("cart", "g60")
        assert (arm.robots[0].clearance or 0.0) > 0.1
    assert [row.line for row in cart.lines] == [2, 3, 4]
    arm, cart = validate_together(own_programs(dock()), dock(), timing_s=5.0)
    found, mirrored = arm.violations[0], cart.violations[0]
    assert found.meeting is not None
    assert mirrored.meeting is not None
    assert (found.meeting.robot, found.meeting.program) == ("cart", "dock_cart.mission")
    assert (mirrored.line, mirrored.meeting.line) == (found.meeting.line, found.line)
    assert 1.0 < found.meeting.shift_s < 5.0, "the cart must be late"
    assert "cart.body" in found.message
    assert f"on line {found.meeting.line} of dock_cart.mission" in found.message


def test_a_planted_contact_is_found_as_in_the_running_cell() -> None:
    arm, _ = validate_together(texts(**NO_PAUSE), dock())
    found = arm.violations[0]
    assert found.contact is not None
    running = RunningDock(texts(**NO_PAUSE))
    while not running.contacts():
        running.cell.advance(running.cell.now + NS_PER_SECOND // 100)
        assert running.cell.now < 20 * NS_PER_SECOND
    first = running.contacts()[0]
    assert found.contact.objects == first.names
    assert found.line == first.line
    # The running cell sees the cart where it was at its last tick.
    assert found.time_s == pytest.approx(first.at / NS_PER_SECOND, abs=0.03)


def test_the_running_cell_has_no_contact_in_the_planned_timing() -> None:
    running = RunningDock(texts())
    running.cell.advance(25 * NS_PER_SECOND)
    assert running.contacts() == []
    assert running.parts["encounters"].next_wake() is None, "all stand: no comparison is due"
    assert running.parts["encounters"].status(running.cell.now).robots == ("g60", "cart")


@pytest.mark.parametrize("mission", [texts()["cart"], "MOVE_TO_POINT x=1.5 y=1 yaw_deg=90\n"])
def test_the_record_has_the_poses_of_the_running_cell(mission: str) -> None:
    """The oracle of recorded_runs: the running cell at every tick, and the arc in between."""
    run = recorded(dock(), {"cart": mission})["cart"]
    running = RunningDock({"cart": mission})
    before, worst = running.pose(), 0.0
    for tick in range(1, math.ceil(run.ends_s * 50) + 5):
        now = tick * NS_PER_SECOND // 50
        running.cell.advance(now)
        pose = running.pose()
        assert _apart(pose, joints_at(run.motion.path, tick / 50)) < 1e-9
        for share in (0.25, 0.5, 0.75):
            on_arc = _between(before, pose, share)
            worst = max(worst, _apart(on_arc, joints_at(run.motion.path, (tick - 1 + share) / 50)))
        before = pose
    assert worst <= run.error + 1e-9
    assert _apart(running.pose(), joints_at(run.motion.path, run.ends_s + 100.0)) < 1e-9


def _apart(one: Any, other: Any) -> float:
    turned = math.remainder(one[2] - other[2], 2 * math.pi)
    return max(math.dist(one[:2], other[:2]), abs(turned))


def _between(one: Any, other: Any, share: float) -> tuple[float, float, float]:
    """A pose on the arc from one pose to another."""
    turned = math.remainder(other[2] - one[2], 2 * math.pi)
    # The chord in the frame of the first pose, and the motion along the arc that has it.
    x, y = other[0] - one[0], other[1] - one[1]
    c, s = math.cos(one[2]), math.sin(one[2])
    ahead, left = c * x + s * y, c * y - s * x
    half = turned / 2.0
    stretch = half / math.sin(half) if half else 1.0
    forward = stretch * (math.cos(half) * ahead + math.sin(half) * left)
    sideways = stretch * (math.cos(half) * left - math.sin(half) * ahead)
    x, y, yaw = one
    return moved_on_arc(x, y, yaw, share * forward, share * sideways, share * turned)


# ── many times ──────────────────────────────────────────────────────────────────────────────────


def random_mission(rng: np.random.Generator) -> str:
    """Routes, straight moves, turns and waits about an arm at the origin."""
    lines = []
    for _ in range(3):
        x, y = rng.uniform(0.7, 3.0), rng.uniform(-1.0, 1.0)
        kind = rng.choice(["MOVE", "MOVE_TO_POINT"])
        yaw = f" yaw_deg={rng.uniform(-180, 180):.1f}" if rng.random() < 0.5 else ""
        lines.append(f"{kind} x={x:.3f} y={y:.3f}{yaw}")
        lines += ["WAIT seconds=0.5"] * int(rng.random() < 0.3)
    return "\n".join(lines)


@cache
def low_arm() -> Chain:
    return chain(read(dock().read_file("g60").decode()))


def check(seed: int, shift: float | None, count: int) -> bool:
    """Compares a proof with the distance at many pairs of times; whether the robots can touch."""
    rng = np.random.default_rng(seed)
    run = recorded(dock(), {"cart": random_mission(rng)})["cart"]
    arm = low_arm()
    path, lines = random_program(arm, rng, run.ends_s)
    foot = translation(0.0, 0.0, rng.uniform(-1.0, -0.3))
    one = TimedRobot(path, [(0.0, PlacedArm(arm, foot, arm_parts(arm, {}), arm.velocity))], lines)
    proof = prove_apart(one, run.motion, shift=shift)
    if not proof.finished:
        assert proof.places
        return True
    ends = max(one.ends, run.ends_s)
    rows = pairs_of_times(rng, ends, 2.0 * ends if shift == math.inf else shift, [], count)
    compare(one, run.motion, proof, rows)
    # The robot itself, without the margin, on the arcs between the recorded ticks.
    pair = ArmPair(one.outfits[0][1], placed_vehicle(BODY))
    for t, u in rows:
        q = np.array(_on_arcs(run.motion.path.begins, run, u))
        assert max(pair.distance(joints_at(one.path, t), q), 0.0) >= proof.clearance - 1e-9
    return any(place.distance <= 0.0 for place in proof.places)


def _on_arcs(begins: Array, run: RecordedRun, t: float) -> tuple[float, float, float]:
    t = min(max(t, 0.0), float(begins[-1]))
    k = min(max(int(np.searchsorted(begins, t, side="right")) - 1, 0), len(begins) - 2)
    a, b = float(begins[k]), float(begins[k + 1])
    ends = joints_at(run.motion.path, a), joints_at(run.motion.path, b)
    return _between(*ends, (t - a) / (b - a) if b > a else 0.0)


SHIFTS = [None, 0.5]


@pytest.mark.parametrize("shift", SHIFTS)
def test_nothing_is_proven_that_is_not_so(shift: float | None) -> None:
    touched = [check(seed, shift, 150) for seed in range(4)]
    assert 0 < sum(touched) < len(touched)


@pytest.mark.soak
@pytest.mark.parametrize("shift", [*SHIFTS, math.inf])
@pytest.mark.parametrize("seed", range(100, 140))
def test_nothing_is_proven_that_is_not_so_at_full_size(seed: int, shift: float | None) -> None:
    check(seed, shift, 4000)


# ── missions that fail ──────────────────────────────────────────────────────────────────────────


def test_a_mission_that_the_robot_cannot_carry_out_is_a_violation() -> None:
    (report,) = validate_together({"cart": "WAIT seconds=1\nMOVE x=50 y=0\n"}, dock())
    (found,) = report.violations
    assert (found.line, found.kind) == (1, "process")
    assert "INVALID_TASK" in found.message


def test_mistakes_are_named_with_their_lines() -> None:
    text = "MOVE x=1\n# nothing\nFLY x=1 y=2\nTURN yaw_deg=left\nWAIT second=1\nWAIT seconds=-1\n"
    (report,) = validate_together({"cart": text}, dock())
    assert [(each.line, each.kind) for each in report.violations] == [
        (1, "syntax"), (3, "syntax"), (4, "syntax"), (5, "syntax"), (6, "syntax"),
    ]  # fmt: skip
    assert report.distance_m == 0.0
    (arm,) = report.robots
    assert arm.robot == "g60"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("MOVE x=1 y=2 x=3", "given twice (got 'x')"),
        ("TURN yaw=1 yaw_deg=90", "given twice (got 'yaw_deg')"),
        ("MOVE_TO_POINT x=1 y=2 y=2", "given twice (got 'y')"),
        ("WAIT seconds=1e9", "86400"),
        ("WAIT seconds=inf", "86400"),
    ],
)
def test_a_parameter_given_twice_and_a_wait_without_an_end_are_mistakes(
    line: str, said: str
) -> None:
    (report,) = validate_together({"cart": f"WAIT seconds=1\n{line}\n"}, dock())
    (found,) = report.violations
    assert (found.line, found.kind) == (2, "syntax")
    assert said in found.message


def test_a_wait_of_a_day_ends_the_validation_with_its_reason() -> None:
    (report,) = validate_together({"cart": "WAIT seconds=86400\n"}, dock())
    (found,) = report.violations
    assert (found.line, found.kind) == (1, "process")
    assert "has not ended after 3600 s" in found.message


def test_only_robots_of_the_cell_take_part() -> None:
    with pytest.raises(ConfigError, match="carts"):
        validate_together({"carts": "WAIT seconds=1\n"}, dock())


def test_a_mission_may_begin_with_a_byte_order_mark() -> None:
    (line,) = read_mission(b"\xef\xbb\xbfTURN yaw_deg=90\r\n")
    assert not line.problem
