"""Builds the simulated KUKA from its configuration."""

from collections.abc import Mapping

import numpy as np

from understudy.errors import ConfigError, Refused
from understudy.motion.path import Floats, Limits
from understudy.ports import Deps
from understudy.robots.kuka import Config, Six
from understudy.robots.kuka.motion import KukaModel, ModalState
from understudy.robots.kuka.robot import KukaGcodeServer, ServerOptions
from understudy.simulation.collision.body import Body, six_joint_chain
from understudy.simulation.collision.watch import CollisionWatch
from understudy.space.kinematics.chain import Chain, Frames
from understudy.space.kinematics.ik import excess, nearest, solve
from understudy.space.model.environment import Read, meshes_of, place
from understudy.space.pose import Pose
from understudy.space.transform import from_abc, matrix
from understudy.units import DEG, MM, nanoseconds


def build(name: str, config: Config, deps: Deps) -> KukaGcodeServer:
    options = ServerOptions(
        blend=config.blend_percent / 100.0,
        advance_run=config.advance_run,
        on_emergency_stop=config.on_emergency_stop,
        on_disconnect=config.on_disconnect,
        post_flow=nanoseconds(config.gas_post_flow_s),
    )
    model = model_of(config, deps.read)
    server = KukaGcodeServer(name, model, options, deps.log)
    if config.collision.enable:
        body = body_of(config, model.chain, deps.read)
        server.guard(CollisionWatch(name, body, server, deps.log))
    return server


def body_of(config: Config, chain: Chain, read: Read) -> Body:
    """The shapes of the robot and its tools, for collision checks."""
    shapes = config.tool_shapes.items()
    return Body(
        chain,
        foot=foot_of(config),
        rules=config.collision,
        tools={number: tuple(shape.build(read) for shape in own) for number, own in shapes},
        meshes=meshes_of([solid for body in chain.bodies for solid in body.collision], read),
        fastest=chain.velocity,
        held=tuple(thing.build(read) for thing in config.collision.held),
    )


def foot_of(config: Config) -> Floats:
    """The place of the robot in the cell, 4×4."""
    x, y, z, rx, ry, rz = config.base_mm_deg
    return place((x, y, z), (rx, ry, rz))


def model_of(config: Config, read: Read) -> KukaModel:
    """Kinematics, frames and limits; raises a `ConfigError` if they do not fit together."""
    arm = six_joint_chain(config, read)
    if arm.linear:
        slides = f"{arm.names[arm.linear[0]]} slides; the axes of a KUKA turn"
        raise ConfigError(slides, key="model", value=config.model)
    home = np.array(config.home_deg) * DEG
    if excess(arm, home).any():
        raise ConfigError("outside the axes' limits", key="home_deg", value=config.home_deg)
    tools, bases = _matrices(config.tools_mm_deg), _matrices(config.bases_mm_deg)
    frames = Frames(_frame(bases, config, "base"), _frame(tools, config, "tool"))
    share = config.home_speed_percent / 100.0
    low = config.lowest_z_mm
    return KukaModel(
        chain=arm,
        tools=tools,
        bases=bases,
        start=_start(config, arm, frames),
        home=home,
        home_limits=Limits.of(arm.velocity * share, arm.acceleration),
        speed_limit=config.speed_limit_mm_s * MM,
        lowest_z=-np.inf if low is None else low * MM,
        turning=config.turning_speed_deg_s * DEG,
        acceleration=config.acceleration_m_s2,
    )


def _start(config: Config, arm: Chain, frames: Frames) -> ModalState:
    """The start position, in the arm configuration nearest to home."""
    position = _pose(config.start_mm_deg)
    home = np.array(config.home_deg) * DEG
    found = solve(arm, matrix(position), frames=frames, near=home)
    if isinstance(found, Refused):
        raise ConfigError(found.reason, key="start_mm_deg", value=config.start_mm_deg)
    return ModalState(
        axes=tuple(nearest(found, home).tolist()),
        position=position,
        tool=config.tool,
        base=config.base,
        speed=config.speed_limit_mm_s * MM,
    )


def _frame(table: Mapping[int, Floats], config: Config, key: str) -> Floats:
    number: int = getattr(config, key)
    if number not in table:
        allowed = ", ".join(map(str, sorted(table)))
        raise ConfigError(f"there is no such {key}", key=key, value=number, allowed=allowed)
    return table[number]


def _matrices(table: Mapping[int, Six]) -> dict[int, Floats]:
    return {number: matrix(_pose(six)) for number, six in table.items()}


def _pose(six: Six) -> Pose:
    x, y, z = (value * MM for value in six[:3])
    a, b, c = (value * DEG for value in six[3:])
    return from_abc(x, y, z, a, b, c)
