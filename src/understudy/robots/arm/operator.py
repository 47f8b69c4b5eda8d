"""Operator actions on an arm's controller, simulated or real, built of G-code lines.

A step, a jog along an axis of the tool and a move to a pose are lines in machine coordinates
(G53), so that no offset shifts them. A Cartesian jog without a step is the longest line
that the arm can follow; a stop ends it.

Jobs get an arm by moves, the pose of its flange, a check of moves in advance (`ArmReach`), and what
of a measured cloud is the arm (`ArmBody`).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from understudy.errors import Refused
from understudy.gcode.blocks import COORDINATE_SYSTEMS, number_text
from understudy.gcode.dialect import Dialect
from understudy.gcode.requests import LineMove, move_to_target
from understudy.motion.path import Floats, Path
from understudy.ports.controller import MotionController
from understudy.ports.job_arm import Block, JobArm, SweptMove, Touch
from understudy.ports.operation import (
    AxisReading,
    Condition,
    Frame,
    Jog,
    ModelTool,
    RobotModel,
    SixNumbers,
    Target,
)
from understudy.robots.arm.controller import ArmController
from understudy.robots.arm.drives import ARC_START
from understudy.robots.arm.mover import ArmMover
from understudy.robots.grblhal.operator import condition_of
from understudy.simulation.collision.body import Body
from understudy.space.kinematics.chain import Frames
from understudy.space.kinematics.teach import moved_frame
from understudy.space.model.shapes import CollisionObject, ObjectType
from understudy.space.pose import Pose, pose_mm_deg
from understudy.space.transform import Array, inverse, matrix, pose
from understudy.units import DEG, MINUTE, MM

if TYPE_CHECKING:
    from understudy.offline.setup import Setup
    from understudy.robots.arm import Config
    from understudy.robots.arm.drives import Arm
    from understudy.space.collision.sweep import Sweeper


LENGTHS = tuple(mm * MM for mm in (2000, 1000, 500, 250, 120, 60, 30, 15, 8, 4, 2, 1))
ANGLES = tuple(deg * DEG for deg in (170, 90, 45, 20, 10, 5, 2, 1))
"""Distances to try for a jog without a step, the longest first."""
NO_FURTHER = Refused("the arm cannot move further in this direction")
POSITION_UNKNOWN = Refused("the controller has not reported the joints: wait until it is connected")
NO_LINES = Refused("this controller moves joints only; lines of the tool need the dialect `arm`")
STANDS = 1e-9
"""Way of a joint, in rad or m, that is none."""
KEPT_BETWEEN_PROGRAMS = ("offsets", "g92", "tool", "tools", "tool_length")
"""Modal state that stays from one program to the next."""
JOINTS, TOOL = {"arm": "ABCUVW", "grblhal": "XYZABC"}, "XYZABC"


def longest(tried: Sequence[float], can_go: Callable[[float], bool]) -> float | None:
    """The longest distance that the arm can follow, to within the last of ``tried``, which are
    distances from long to short; None if it can follow none of them."""
    too_far: float | None = None
    for distance in tried:
        if can_go(distance):
            break
        too_far = distance
    else:
        return None
    while too_far is not None and too_far - distance > tried[-1]:
        middle = 0.5 * (distance + too_far)
        distance, too_far = (middle, too_far) if can_go(middle) else (distance, middle)
    return distance


class ArmActions:
    """`OperatorActions` of an arm. ``arm``: its model, which limits jogs; ``simulated``: the
    simulated controller, which offers more than the port."""

    def __init__(
        self,
        controller: MotionController,
        arm: "Arm",
        *,
        dialect: Dialect,
        simulated: Any | None = None,
    ) -> None:
        self._controller = controller
        self._arm = arm
        self._dialect = dialect
        self._jog_line = -1
        self.frames: tuple[Frame, ...] = ("joint",)
        if self._dialect.name == "arm":
            self.frames = ("joint", "base", "tool")
        if simulated is not None:
            self.set_joint_positions = simulated.set_joint_positions
            self.set_tcp = simulated.set_tcp
            self.set_tcp_of = simulated.set_tcp_of
            if dialect.name == "arm":  # in grblHAL's dialect offsets shift joints
                self.set_work_offsets = simulated.set_work_offsets
        self.hold = controller.hold
        self.cycle_start = controller.cycle_start
        self.override_feed = controller.override_feed
        self.override_rapid = controller.override_rapid
        self.send_gcode = controller.send_gcode
        self.stop = controller.stop
        self.emergency_stop = controller.emergency_stop
        self.reset = controller.reset
        self.disable = controller.disable

    # ── readings ──

    def condition(self, now: int) -> Condition:
        return condition_of(self._controller.status(now))

    def axis_reading(self, now: int) -> AxisReading:
        joints = self._controller.joint_state(now)
        tip = self._controller.tcp(now)
        return AxisReading(joints.positions, joints.velocities, joints.torques, tip)

    # ── drives ──

    def enable(self, now: int) -> Refused | None:
        if not self._controller.is_connected() and (refused := self._controller.connect(now)):
            return refused
        return self._controller.enable(now)

    def home(self, axis: int, now: int) -> Refused | None:
        return self._controller.home(now, axis)

    def set_tool(self, number: int, now: int) -> Refused | None:
        known = self._arm.mover(number)
        if isinstance(known, Refused):
            return known
        return self._controller.send_gcode(f"T{number} M6", now)

    # ── moves ──

    def move_to(self, target: Target, now: int) -> Refused | None:
        if target.joints is not None:
            return self._go_joints(target.joints, None, now)
        assert target.pose is not None
        if "base" not in self.frames:
            return NO_LINES
        return self._go_tool(target.pose, target.speed / MM if target.line else None, now)

    def follow_joints(
        self, points: Sequence[Sequence[float]], durations: Sequence[float], now: int
    ) -> Refused | None:
        """Straight lines of the joints, each with its duration (G93): the controller blends them as
        it does those of a program, and keeps the durations as far as its accelerations allow."""
        mover = self._arm.movers[0]
        here = np.array(self._controller.joint_state(now).positions)
        rows = np.array(points, dtype=float).reshape(len(points), -1)
        if not np.isfinite(here).all():
            return POSITION_UNKNOWN
        if refused := mover.beyond(rows) or _too_fast(mover.chain, here, rows, durations):
            return refused
        for line in self._timed_lines(here, rows, durations):
            if refused := self._controller.send_gcode(line, now):
                self._controller.stop(now)
                return refused
        return None

    def _timed_lines(self, here: Floats, rows: Floats, durations: Sequence[float]) -> Iterator[str]:
        for row, duration in zip(rows, durations, strict=True):
            if np.abs(row - here).max() < STANDS:
                yield f"G4 P{number_text(round(duration, 6))}"
            else:
                words = _words(JOINTS[self._dialect.name], row / self._arm.movers[0].chain.units)
                feed = number_text(round(MINUTE / duration, 6))
                yield f"G21 G90 G93 G53 G1 {words} F{feed}"
            here = row
        yield "G94"

    def jog(self, jog: Jog, now: int) -> Refused | None:
        if jog.frame not in self.frames:
            return NO_LINES
        if jog.frame == "joint" and jog.step is None:
            return self._controller.jog(jog.axis, jog.speed, now)
        joints = list(self._controller.joint_state(now).positions)
        if not all(map(math.isfinite, joints)):
            return POSITION_UNKNOWN
        if jog.step is None or jog.frame != "joint":
            return self._jog_tool(jog, now)
        joints[jog.axis] += math.copysign(jog.step, jog.speed)
        unit = float(self._arm.movers[0].chain.units[jog.axis])
        return self._go_joints(joints, abs(jog.speed) / unit, now)

    def stop_jog(self, now: int) -> Refused | None:
        """Ends a jog of a joint, or the line of a jog of the tool, but no other line."""
        status = self._controller.status(now)
        ours = status.accepted == self._jog_line and status.line in (0, self._jog_line)
        if status.state == "Run" and ours:
            return self._controller.stop(now)
        return self._controller.stop_jog(now)

    # ── inside ──

    def _jog_tool(self, jog: Jog, now: int) -> Refused | None:
        here, in_tool = matrix(self._controller.tcp(now)), jog.frame == "tool"
        distance, unit = self._jog_distance(jog, here, now), MM if jog.axis < 3 else DEG
        if distance is None:
            return NO_FURTHER
        there = moved_frame(here, jog.axis, math.copysign(distance, jog.speed), in_tool=in_tool)
        refused = self._go_tool(pose(there), abs(jog.speed) / unit, now)
        if refused is None:
            self._jog_line = self._controller.status(now).accepted
        return refused

    def _jog_distance(self, jog: Jog, here: np.ndarray[Any, Any], now: int) -> float | None:
        """The step; without one, the longest distance that the arm can follow."""
        if jog.step is not None:
            return jog.step
        q = np.array(self._controller.joint_state(now).positions)
        mover = self._arm.movers[0]
        tool = inverse(mover.flange(q)) @ here
        held = replace(mover, frames=Frames(mover.frames.base, tool))

        def can_go(distance: float) -> bool:
            amount = math.copysign(distance, jog.speed)
            there = moved_frame(here, jog.axis, amount, in_tool=jog.frame == "tool")
            move = LineMove(pose(there), speed=1.0, turning=1.0)
            return not isinstance(held.path(move, q, line=0), Refused)

        return longest(LENGTHS if jog.axis < 3 else ANGLES, can_go)

    def _go_joints(
        self, joints: Sequence[float], per_second: float | None, now: int
    ) -> Refused | None:
        figures = np.array(joints) / self._arm.movers[0].chain.units
        return self._go(_words(JOINTS[self._dialect.name], figures), per_second, now)

    def _go_tool(self, there: Pose, per_second: float | None, now: int) -> Refused | None:
        figures = np.array(there) / np.array([MM] * 3 + [DEG] * 3)
        return self._go(_words(TOOL, figures), per_second, now)

    def _go(self, words: str, per_second: float | None, now: int) -> Refused | None:
        if per_second is None:
            return self._controller.send_gcode(f"G21 G90 G94 G53 G0 {words}", now)
        feed = per_second * (1.0 if self._dialect.feed_per_second else MINUTE)
        line = f"G21 G90 G94 G53 G1 {words} F{number_text(round(feed, 6))}"
        return self._controller.send_gcode(line, now)


def _too_fast(chain: Any, here: Floats, rows: Floats, durations: Sequence[float]) -> Refused | None:
    """The refusal of the first point that a joint would have to exceed its speed for."""
    speeds = np.abs(np.diff(rows, axis=0, prepend=here[None])) / np.array(durations)[:, None]
    over = np.argwhere(speeds > chain.velocity * (1.0 + 1e-6))
    if not len(over):
        return None
    row, joint = over[0].tolist()
    unit, name = chain.units[joint], chain.unit_names[joint]
    return Refused(
        f"point {row}: {chain.names[joint]} would move at {speeds[row, joint] / unit:.1f} {name}/s;"
        f" its limit is {chain.velocity[joint] / unit:.1f} {name}/s"
    )


def _words(letters: str, values: np.ndarray[Any, Any]) -> str:
    pairs = zip(letters, values.tolist(), strict=True)
    return " ".join(letter + number_text(round(value, 9)) for letter, value in pairs)


# ── model ───────────────────────────────────────────────────────────────────────────────────────


def model_of(config: "Config", robot: ArmController) -> RobotModel:
    mover = robot.arm.movers[0]
    return RobotModel(
        chain=mover.chain,
        base=tuple(inverse(mover.frames.base).reshape(-1).tolist()),
        tools=lambda: _tools(config, robot.tool_offsets.measured),
        tool=lambda now: robot.firmware.reading(now).tool,
        work_offsets=lambda: _work_offsets(robot),
        overrides=lambda now: _overrides(robot, now),
        live_setup=lambda setup: _live_setup(robot, setup),
    )


def _tools(config: "Config", measured: Mapping[int, Pose]) -> dict[int, ModelTool]:
    return {
        number: ModelTool(
            tool.name,
            pose_mm_deg(measured[number]) if number in measured else list(tool.tcp_mm_deg),
            tool.shapes,
            measured=number in measured,
        )
        for number, tool in config.tools.items()
    }


def _work_offsets(robot: ArmController) -> dict[str, SixNumbers]:
    """The work offsets that are not zero; none in grblHAL's dialect, where they shift joints."""
    if robot.arm.options.dialect.name != "arm":
        return {}
    pairs = zip(COORDINATE_SYSTEMS, robot.firmware.modal.offsets, strict=True)
    return {name: offset for name, offset in pairs if any(offset)}


def _overrides(robot: ArmController, now: int) -> dict[str, float]:
    feed, rapid, _ = robot.firmware.reading(now).overrides
    return {"feed": float(feed), "rapid": float(rapid)}


def _live_setup(robot: ArmController, setup: "Setup") -> "Setup":
    live = robot.firmware.modal
    kept = {name: getattr(live, name) for name in KEPT_BETWEEN_PROGRAMS}
    modal = structs.replace(setup.modal, **kept, selected=live.tool)
    mover = robot.tool_offsets.mover(live.tool)
    if isinstance(mover, Refused):
        return setup
    return replace(setup, mount=robot.tool_offsets.mover, mover=mover, modal=modal)


# ── the arm as jobs use it ────────────────────────────────────────────────────────────────────────


HELD = "held part"


class ArmBody:
    """`SweepsMoves` of an arm. ``mover``: of the mounted tool; ``tool``: its number."""

    def __init__(
        self,
        body: Body,
        mover: Callable[[], ArmMover | Refused],
        joints: Callable[[int], Floats],
        tool: Callable[[int], int],
    ) -> None:
        self._body = body
        self._mover = mover
        self._joints = joints
        self._tool = tool

    def covers(
        self, points: Sequence[tuple[float, float, float]], margin: float, now: int
    ) -> list[bool]:
        from understudy.space.collision.world import arm_parts, carried_part
        from understudy.space.model.shapes import near

        body, rows = self._body, np.array(points).reshape(-1, 3)
        carried = (carried_part(body.chain, thing) for thing in body.carried(self._tool(now)))
        frames = body.foot @ body.chain.axes_of(self._joints(now)[None])[0]
        found = np.zeros(len(rows), dtype=bool)
        for part in (*arm_parts(body.chain, body.meshes), *carried):
            found |= near(part.shape, frames[part.body] @ part.place, rows, margin)
        return [bool(each) for each in found]

    def first_touch(
        self, moves: Sequence[SweptMove], blocks: Sequence[Block], now: int
    ) -> Touch | Refused | None:
        """Plans the moves as the controller will, and sweeps the arm along them."""
        from understudy.space.collision.sweep import Sweeper

        mover = self._mover()
        if isinstance(mover, Refused):
            return mover
        if not blocks:
            return None
        around = [_object(block, matrix(block.at)) for block in blocks]
        sweepers: dict[Block | None, Sweeper] = {}
        paths = _planned(mover, [move.target for move in moves], self._joints(now))
        for number, (move, path) in enumerate(zip(moves, paths, strict=True)):
            if isinstance(path, Refused):
                return path
            if move.held not in sweepers:
                sweepers[move.held] = self._sweeper(around, move.held, mover, now)
            spot = sweepers[move.held].first_contact(path.shape, path.length)
            if spot is not None:
                return Touch(number, spot.object1_name, spot.object2_name, spot.point)
        return None

    def _sweeper(
        self, around: Sequence[CollisionObject], held: Block | None, mover: ArmMover, now: int
    ) -> "Sweeper":
        from understudy.space.collision.detector import CollisionDetector
        from understudy.space.collision.sweep import Sweeper

        body = self._body
        detector = CollisionDetector(
            body.chain, around, meshes=body.meshes, foot=body.foot, check_self_collision=False
        )
        for thing in body.carried(self._tool(now)):
            detector.attach(thing)
        if held is not None:
            detector.attach(_object(held, np.asarray(mover.frames.tool @ matrix(held.at)), HELD))
        return Sweeper(detector)


def _object(block: Block, place: Array, name: str = "") -> CollisionObject:
    return CollisionObject(
        type=ObjectType.BOX, name=name or block.name, transform=place, dimensions=block.size
    )


# ── moves ─────────────────────────────────────────────────────────────────────────────────────────


def _planned(mover: ArmMover, targets: Iterable[Target], q: Floats) -> Iterator[Path | Refused]:
    """The paths of moves one after the other, from ``q``; the first that is refused is the last."""
    for target in targets:
        path = mover.path(move_to_target(target), q, line=0)
        yield path
        if isinstance(path, Refused):
            return
        q = path.end[-1] if len(path) else q


class ArmReach:
    """`ReachCheck` of an arm: plans the moves as its controller will, without moving.

    ``contact``: the first two things that touch on a path; None without a check of contacts.
    """

    def __init__(
        self,
        mover: Callable[[], ArmMover | Refused],
        joints: Callable[[int], Floats],
        contact: Callable[[Path], tuple[str, str] | None] = lambda path: None,
    ) -> None:
        self._mover = mover
        self._joints = joints
        self._contact = contact

    def check(self, targets: Sequence[Target], now: int) -> Refused | None:
        mover = self._mover()
        if isinstance(mover, Refused):
            return mover
        for number, path in enumerate(_planned(mover, targets, self._joints(now)), 1):
            if isinstance(path, Refused):
                return Refused(f"move {number} of {len(targets)}: {path.reason}", path.code)
            if touched := self._contact(path):
                return Refused(f"move {number} of {len(targets)}: {' touches '.join(touched)}")
        return None


def job_arm(robot: ArmController) -> JobArm:
    """The simulated arm, as jobs use it."""
    actions = ArmActions(robot, robot.arm, dialect=robot.arm.options.dialect, simulated=robot)

    def joints(now: int) -> Floats:
        return np.array(robot.view(now).q)

    def mounted(now: int) -> int:
        return robot.firmware.reading(now).tool

    def mover(tool: int | None = None) -> ArmMover | Refused:
        return robot.tool_offsets.mover(robot.firmware.modal.tool if tool is None else tool)

    def reaches(poses: Sequence[Pose], tool: int | None) -> list[bool]:
        there = mover(tool)
        return [False] * len(poses) if isinstance(there, Refused) else there.reaches(poses)

    return JobArm(
        robot,
        actions.move_to,
        lambda now: pose(robot.flange(now)),
        ArmReach(mover, joints),
        reaches,
        tools=tuple(robot.arm.movers),
        tool=mounted,
        arc_on=lambda: robot.io.digital_output(ARC_START),
        table=robot.tools,
        feed_per_second=robot.arm.options.dialect.feed_per_second,
        joints=lambda now: robot.view(now).q,
        clear=ArmReach(mover, joints, _contact(robot)),
        body=_body(robot, mover, joints, mounted),
    )


def real_job_arm(
    robot: ArmController,
    driver: MotionController,
    actions: ArmActions,
    mounted: Callable[[int], int],
) -> JobArm:
    """A REAL arm, as jobs use it: its joints are those of the last report; the model of its
    simulated sibling tells where it can go and what it would touch. ``mounted``: the number of the
    tool that the driver moves."""

    def joints(now: int) -> Floats:
        return np.array(driver.joint_state(now).positions)

    def flange(now: int) -> Floats:
        return robot.arm.movers[0].flange(joints(now))

    def mover() -> ArmMover | Refused:
        """The mover with the tool of the driver, which the operator may have changed."""
        bare = robot.arm.movers[0]
        if not driver.is_connected() or not np.isfinite(joints(0)).all():
            return POSITION_UNKNOWN
        tool = inverse(flange(0)) @ matrix(driver.tcp(0))
        return replace(bare, frames=Frames(bare.frames.base, tool))

    def reaches(poses: Sequence[Pose], tool: int | None) -> list[bool]:
        """Whether the tool can be there; before the first report, the tool of the cell file."""
        there = mover()
        if isinstance(there, Refused):
            there = robot.arm.movers[mounted(0) if tool is None else tool]
        return there.reaches(poses)

    return JobArm(
        driver,
        actions.move_to,
        lambda now: pose(flange(now)),
        ArmReach(mover, joints),
        reaches,
        tools=tuple(robot.arm.movers),
        tool=mounted,
        joints=lambda now: driver.joint_state(now).positions,
        clear=ArmReach(mover, joints, _contact(robot)),
        body=_body(robot, mover, joints, mounted),
    )


def _contact(robot: ArmController) -> Callable[[Path], tuple[str, str] | None]:
    watch = robot.collision
    return (lambda path: None) if watch is None else watch.contact_on


def _body(
    robot: ArmController,
    mover: Callable[[], ArmMover | Refused],
    joints: Callable[[int], Floats],
    tool: Callable[[int], int],
) -> ArmBody | None:
    watch = robot.collision
    return None if watch is None else ArmBody(watch.body, mover, joints, tool)
