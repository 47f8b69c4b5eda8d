"""Builds the simulated arm, its body for collision checks and its tool table from the cell file."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from understudy.errors import ConfigError, Refused
from understudy.gcode import ARM, GRBLHAL_ARM, ZERO, Dialect, Modal
from understudy.gcode.dialect import TABLE_CODES, with_pins
from understudy.motion.dynamics import Dynamics, Payload, dynamics, gravity_at
from understudy.motion.path import Floats, Limits
from understudy.motion.profile import Profile
from understudy.ports import Deps
from understudy.ports.tools import ToolDefinition
from understudy.robots.arm import Config, ToolConfig
from understudy.robots.arm.controller import ArmController
from understudy.robots.arm.drives import Arm, tool_row
from understudy.robots.arm.mover import ArmMover
from understudy.simulation.collision.body import Body, six_joint_chain
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.simulation.program.steps import ControllerOptions
from understudy.space.kinematics.chain import Chain, Frames
from understudy.space.model.environment import Environment, Read, meshes_of, place
from understudy.space.model.shapes import CollisionObject
from understudy.space.pose import Pose, pose_of
from understudy.space.transform import inverse, matrix, pose
from understudy.units import DEG, MM, NS_PER_SECOND, ms_to_ns

if TYPE_CHECKING:
    from understudy.space.collision.detector import CollisionDetector


# ── the tool table ────────────────────────────────────────────────────────────────────────────────


class ArmTools:
    """`ports.tools.ToolTable` of an arm.

    ``flange``: its pose in the cell. ``measured``: tips that differ from the cell file.
    """

    def __init__(
        self,
        config: Config,
        *,
        mounted: Callable[[int], int],
        flange: Callable[[int], Pose],
        measured: Callable[[], Mapping[int, Pose]] = dict,
        set_tip: Callable[[int, Pose, int], Refused | None] = lambda number, tcp, now: None,
    ) -> None:
        self._configured = {
            number: _definition(number, tool) for number, tool in config.tools.items()
        }
        self.mounted = mounted
        self.flange = flange
        self._measured = measured
        self._set_tip = set_tip

    def tools(self) -> Mapping[int, ToolDefinition]:
        measured = self._measured()
        return {
            number: replace(tool, tcp=measured[number]) if number in measured else tool
            for number, tool in self._configured.items()
        }

    def set_tip(self, number: int, tcp: Pose, now: int) -> Refused | None:
        return self._set_tip(number, tcp, now)


def _definition(number: int, tool: ToolConfig) -> ToolDefinition:
    x, y, z = (value * MM for value in tool.com_mm)
    return ToolDefinition(
        number,
        tool.name,
        pose_of(tool.tcp_mm_deg),
        tool.mass_kg,
        (x, y, z),
        tool.outputs,
        tool.dock.pose() if tool.dock else None,
    )


# ── building ──────────────────────────────────────────────────────────────────────────────────────


def detector_of(
    config: Config, chain: Chain, environment: Environment, tool: int, read: Read
) -> "CollisionDetector":
    """The collision detector of the arm with this tool, as its collision keys configure it."""
    return body_of(config, chain, read).detector(environment, tool)


def body_of(config: Config, chain: Chain, read: Read) -> Body:
    speeds = config.max_velocity_deg_s
    return Body(
        chain,
        foot=foot_of(config),
        rules=config.collision,
        tools={number: _shapes(tool, read) for number, tool in config.tools.items()},
        meshes=meshes_of([solid for body in chain.bodies for solid in body.collision], read),
        fastest=chain.velocity if speeds is None else np.array(speeds) * chain.units,
        held=tuple(thing.build(read) for thing in config.collision.held),
    )


def foot_of(config: Config) -> Floats:
    """The place of the robot in the cell, 4×4."""
    x, y, z, rx, ry, rz = config.base_mm_deg
    return place((x, y, z), (rx, ry, rz))


def _shapes(tool: ToolConfig, read: Read) -> tuple[CollisionObject, ...]:
    named = (replace(shape, name=f"{tool.name}.{shape.name}") for shape in tool.shapes)
    return tuple(shape.build(read) for shape in named)


BARE = ToolConfig("flange")


def build(name: str, config: Config, deps: Deps) -> ArmController:
    io = VirtualIO(config.io)
    arm = arm_of(config, deps)
    controller = ArmController(name, arm, io=io, clock_state=deps.clock_state)
    controller.tools = tools_of(config, controller)
    if config.collision.enable:
        controller.guard(body_of(config, arm.movers[0].chain, deps.read), deps.log)
    return controller


def tools_of(config: Config, controller: ArmController) -> ArmTools:
    return ArmTools(
        config,
        mounted=lambda now: controller.firmware.reading(now).tool,
        flange=lambda now: pose(controller.flange(now)),
        measured=lambda: controller.tool_offsets.measured,
        set_tip=controller.set_tcp_of,
    )


def arm_of(config: Config, deps: Deps) -> Arm:
    joints = six_joint_chain(config, deps.read)
    start = _angles(config.start_deg, joints, "start_deg")
    home = _angles(config.home_deg, joints, "home_deg")
    tools = {0: BARE, **config.tools}
    if config.tool not in tools:
        raise ConfigError("there is no such tool", key="tool", value=config.tool)
    simulation = config.simulation
    return Arm(
        options=_options(config, joints, home),
        movers={number: mover_of(config, joints, number) for number in tools},
        dynamics={number: _dynamics(config, joints, tool) for number, tool in tools.items()},
        window=config.planner_blocks,
        profile=profile_of(config),
        start=tuple(start.tolist()),
        period=round(NS_PER_SECOND / simulation.update_rate_hz),
        command_delay=ms_to_ns(simulation.command_delay_ms),
        feedback_delay=ms_to_ns(simulation.feedback_delay_ms),
        enable_dynamics=simulation.enable_dynamics,
    )


def profile_of(config: Config) -> Profile:
    """The profile of the cell file; without it, a jerk that is given acts."""
    return config.profile or ("jerk_limited" if config.max_jerk_deg_s3 else "trapezoid")


def _options(config: Config, joints: Chain, home: Floats) -> ControllerOptions:
    a, b, c, u, v, w = (home / joints.units).tolist()
    rotary = tuple(unit == "deg" for unit in joints.unit_names)
    own, rows = config.dialect == "arm", sorted(config.tools.items())
    return ControllerOptions(
        dialect=dialect_of(config, rotary),
        modal=Modal(
            path="G64" if own else "G61",
            tool=config.tool,
            selected=config.tool,
            g28=(a, b, c, u, v, w) if own else ZERO,
            tools=tuple(tool_row(number, tool.tcp_mm_deg[2]) for number, tool in rows),
        ),
        home=(a, b, c, u, v, w),
        homing_share=config.homing_speed_percent / 100.0,
        deviation=config.junction_deviation_deg * DEG,
        process_wait=config.arc_wait == "implicit",
        wire=dialect_of(config, rotary, wire=True),
    )


def dialect_of(config: Config, rotary: tuple[bool, ...], *, wire: bool = False) -> Dialect:
    """The dialect of a program's lines, or of lines over a wire; ``rotary``: joints that turn."""
    kind = ARM if config.dialect == "arm" and not wire else GRBLHAL_ARM
    dialect = replace(
        kind,
        without=kind.without - TABLE_CODES if config.tools else kind.without,
        rotary=rotary,
        feed_per_second=config.feed_unit == "per_second" and not wire,
    )
    return with_pins(
        dialect,
        digital_inputs=config.io.digital_inputs,
        digital_outputs=config.io.digital_outputs,
        analog_inputs=config.io.analog_inputs,
        analog_outputs=config.io.analog_outputs,
    )


def mover_of(config: Config, joints: Chain, number: int) -> ArmMover:
    """The arm with a tool of its table; 0: with none."""
    tool = config.tools[number] if number else BARE
    jerk = _figures(config.max_jerk_deg_s3, joints, joints.jerk, "max_jerk_deg_s3")
    limits = Limits.of(
        _figures(config.max_velocity_deg_s, joints, joints.velocity, "max_velocity_deg_s"),
        _figures(
            config.max_acceleration_deg_s2, joints, joints.acceleration, "max_acceleration_deg_s2"
        ),
        jerk if profile_of(config) == "jerk_limited" else np.inf,
    )
    # Poses are those of the cell, seen from the foot of the arm.
    frames = Frames(inverse(matrix(pose_of(config.base_mm_deg))), matrix(pose_of(tool.tcp_mm_deg)))
    return ArmMover(joints, limits, frames, config.junction_deviation_deg * DEG)


def _dynamics(config: Config, joints: Chain, tool: ToolConfig) -> Dynamics:
    simulation = config.simulation
    return dynamics(
        joints,
        payload=Payload(tool.mass_kg, np.array(tool.com_mm) * MM),
        joint_inertia=_counted(simulation.joint_inertia, joints, "simulation.joint_inertia"),
        joint_friction=_counted(simulation.joint_friction, joints, "simulation.joint_friction"),
        gravity=gravity_at(matrix(pose_of(config.base_mm_deg))),
    )


def _angles(degrees: list[float] | None, joints: Chain, key: str) -> Floats:
    """The given angles in rad; else zero, or the middle of the range of a joint without a zero."""
    if degrees is None:
        low, high = joints.sampling_range
        return np.where((low <= 0.0) & (high >= 0.0), 0.0, 0.5 * (low + high))
    q = _counted(degrees, joints, key) * joints.units
    if ((q < joints.lower - 1e-9) | (q > joints.upper + 1e-9)).any():
        low, high = joints.lower / joints.units, joints.upper / joints.units
        allowed = ", ".join(f"{a:g}…{b:g}" for a, b in zip(low, high, strict=True))
        raise ConfigError("outside the joint limits", key=key, value=degrees, allowed=allowed)
    return q


def _figures(degrees: list[float] | None, joints: Chain, own: Floats, key: str) -> Floats:
    return own if degrees is None else _counted(degrees, joints, key) * joints.units


def _counted(values: list[float] | None, joints: Chain, key: str) -> Floats:
    if values is None:
        return np.zeros(joints.dof)
    if len(values) != joints.dof:
        raise ConfigError(
            "one number per joint is needed", key=key, value=values, allowed=f"{joints.dof} numbers"
        )
    return np.array(values)
