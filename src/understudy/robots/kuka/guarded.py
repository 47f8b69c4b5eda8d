"""A KUKA as its collision watch sees it."""

from understudy.motion.plan import Plan
from understudy.robots.kuka.config import Config
from understudy.robots.kuka.server import KukaGcodeServer
from understudy.simulation.collision.body import Body
from understudy.simulation.collision.contact import Contact
from understudy.space.kinematics.chain import Chain
from understudy.space.model.environment import Read, meshes_of, place


class Guarded:
    """`Mover` of a watch."""

    def __init__(self, server: KukaGcodeServer) -> None:
        self._server = server

    @property
    def plan(self) -> Plan:
        return self._server.plan

    @property
    def first(self) -> int:
        return self._server.first

    @property
    def held(self) -> bool:
        """An emergency stop freezes the motion; released, it goes on along the same path."""
        return self._server.stopped()

    @property
    def tool(self) -> int:
        return self._server.tool

    def collided(self, contact: Contact, now: int) -> None:
        self._server.freeze(contact.told(), now)


def body_of(config: Config, chain: Chain, read: Read) -> Body:
    x, y, z, rx, ry, rz = config.base_mm_deg
    shapes = config.tool_shapes.items()
    return Body(
        chain,
        foot=place((x, y, z), (rx, ry, rz)),
        rules=config.collision,
        tools={number: tuple(shape.build(read) for shape in own) for number, own in shapes},
        meshes=meshes_of([solid for body in chain.bodies for solid in body.collision], read),
        fastest=chain.velocity,
    )
