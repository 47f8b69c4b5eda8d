"""From the cell file to a robot that can be sent records."""

from collections.abc import Mapping

import numpy as np

from understudy.errors import ConfigError, Refused
from understudy.motion.path import Floats, Limits
from understudy.ports import Deps
from understudy.robots.kuka.config import Config, Six
from understudy.robots.kuka.guarded import Guarded, body_of
from understudy.robots.kuka.moves import Robot, Standing
from understudy.robots.kuka.server import KukaGcodeServer, Manners
from understudy.simulation.collision.body import chain_of
from understudy.simulation.collision.watch import CollisionWatch
from understudy.space.kinematics.chain import Chain, Frames
from understudy.space.kinematics.ik import excess, nearest, solve
from understudy.space.pose import Pose
from understudy.space.transform import from_abc, matrix
from understudy.units import DEG, MM, nanoseconds


def build(name: str, config: Config, deps: Deps) -> KukaGcodeServer:
    manners = Manners(
        blend=config.blend_percent / 100.0,
        advance_run=config.advance_run,
        on_disconnect=config.on_disconnect,
        post_flow=nanoseconds(config.gas_post_flow_s),
    )
    robot = robot_of(config, deps)
    server = KukaGcodeServer(name, robot, manners, deps.tell)
    if config.collision.enable:
        body = body_of(config, robot.chain, deps.read)
        server.guard(CollisionWatch(name, body, Guarded(server), deps.tell))
    return server


def robot_of(config: Config, deps: Deps) -> Robot:
    arm = chain_of(deps.read(config.model), config.model)
    if arm.dof != 6:
        raise ConfigError("an arm with six joints is needed", key="model", value=config.model)
    home = np.array(config.home_deg) * DEG
    if excess(arm, home).any():
        raise ConfigError("outside the axes' limits", key="home_deg", value=config.home_deg)
    tools, bases = _matrices(config.tools_mm_deg), _matrices(config.bases_mm_deg)
    share = config.home_speed_percent / 100.0
    low = config.lowest_z_mm
    return Robot(
        chain=arm,
        tools=tools,
        bases=bases,
        start=_start(config, arm, Frames(_at(bases, config, "base"), _at(tools, config, "tool"))),
        home=home,
        home_limits=Limits.of(arm.velocity * share, arm.acceleration),
        speed_limit=config.speed_limit_mm_s * MM,
        lowest_z=-np.inf if low is None else low * MM,
        turning=config.turning_speed_deg_s * DEG,
        acceleration=config.acceleration_m_s2,
    )


def _start(config: Config, arm: Chain, frames: Frames) -> Standing:
    """In the configuration nearest to home."""
    position = _pose(config.start_mm_deg)
    home = np.array(config.home_deg) * DEG
    found = solve(arm, matrix(position), frames=frames, near=home)
    if isinstance(found, Refused):
        raise ConfigError(found.reason, key="start_mm_deg", value=config.start_mm_deg)
    return Standing(
        axes=tuple(nearest(found, home).tolist()),
        position=position,
        tool=config.tool,
        base=config.base,
        speed=config.speed_limit_mm_s * MM,
    )


def _at(table: Mapping[int, Floats], config: Config, key: str) -> Floats:
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
