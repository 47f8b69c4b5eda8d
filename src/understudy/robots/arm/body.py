"""The arm as a body among others: its links, the tool in its hand, what stands around it."""

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from understudy.robots.arm.config import Config, ToolConfig
from understudy.simulation.collision.body import Body
from understudy.space.kinematics.chain import Chain
from understudy.space.model.environment import Environment, Read, meshes_of, place
from understudy.space.model.shapes import CollisionObject
from understudy.units import DEG

if TYPE_CHECKING:
    from understudy.space.collision.detector import CollisionDetector


def detector_of(
    config: Config, chain: Chain, environment: Environment, tool: int, read: Read
) -> "CollisionDetector":
    """What the arm touches with this tool in hand, as its collision keys say."""
    return body_of(config, chain, read).detector(environment, tool)


def body_of(config: Config, chain: Chain, read: Read) -> Body:
    x, y, z, rx, ry, rz = config.base_mm_deg
    speeds = config.max_velocity_deg_s
    return Body(
        chain,
        foot=place((x, y, z), (rx, ry, rz)),
        rules=config.collision,
        tools={number: _shapes(tool, read) for number, tool in config.tools.items()},
        meshes=meshes_of([solid for body in chain.bodies for solid in body.collision], read),
        fastest=chain.velocity if speeds is None else np.array(speeds) * DEG,
    )


def _shapes(tool: ToolConfig, read: Read) -> tuple[CollisionObject, ...]:
    named = (replace(shape, name=f"{tool.name}.{shape.name}") for shape in tool.shapes)
    return tuple(shape.build(read) for shape in named)
