"""The arm as a body among others: its links, the tool in its hand, what stands around it."""

from msgspec.structs import replace

from understudy.cell.arm.config import Config, ToolConfig
from understudy.space.chain import Chain
from understudy.space.collide import CollisionDetector
from understudy.space.environment import Environment, ObjectConfig, Read, meshes_of, place


def detector_of(
    config: Config, chain: Chain, environment: Environment, tool: int, read: Read
) -> CollisionDetector:
    """What the arm touches with this tool in hand, as its collision keys say."""
    rules = config.collision
    x, y, z, rx, ry, rz = config.base_mm_deg
    found = CollisionDetector(
        chain,
        environment.everything(),
        meshes=meshes_of([solid for body in chain.bodies for solid in body.collision], read),
        foot=place((x, y, z), (rx, ry, rz)),
        check_self_collision=rules.check_self_collision,
        check_environment=rules.check_environment,
    )
    if rules.self_collision_pairs != "auto":
        found.set_self_collision_pairs(rules.self_collision_pairs)
    for thing in _shapes(config.tools.get(tool, ToolConfig())):
        found.attach(thing.build(read))
    return found


def _shapes(tool: ToolConfig) -> list[ObjectConfig]:
    return [replace(shape, name=f"{tool.name}.{shape.name}") for shape in tool.shapes]
