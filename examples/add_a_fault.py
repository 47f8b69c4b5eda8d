"""Add faults from outside the package: a text robot whose belt slips and whose drive trips.

A fault is declared by the kind that it acts on, as `FAULTS`. For one that is "asked" the robot asks
the scenario each time it may act; one that is "brought" is injected by a rule or an operator. Both
can be used in scenario rules, and `understudy faults` lists them. `REACTIONS` says what is expected
of each; `understudy faults --run` tries it.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import understudy
from understudy import registry
from understudy.campaign.fault_atlas import Atlas
from understudy.config import load_config
from understudy.errors import Refused
from understudy.ports import Deps, Ticket
from understudy.ports.fault_reactions import Reaction, Reactions, Trial, answered, at_once
from understudy.ports.faults import Fault, Faults, Figure
from understudy.robots import text_robot
from understudy.robots.text_robot import Config, TextRobot
from understudy.space.pose import Pose
from understudy.units import MM

FAULTS: Faults = {
    **text_robot.FAULTS,
    "belt_slip": Fault("asked", "a move ends short in x", {"slip_mm": Figure(5.0, 0.0, 100.0)}),
    "drive_trip": Fault("brought", "the robot stops with error code 5 until reset"),
}


def move(trial: Trial) -> None:
    """a client moves the robot, and reads its position"""
    trial.client("text_tcp").say(b"MOVE_ABS 100,0,100,0,0,0\nGET_POS\n")


REACTIONS: Reactions = {
    **text_robot.REACTIONS,
    "belt_slip": Reaction(at_once, (answered("text_tcp", "95.00,"),), within_s=1.0, then=move),
    "drive_trip": Reaction(at_once, (answered("text_tcp", "ERROR"),), within_s=1.0, then=move),
}


class WornRobot(TextRobot):
    """A text robot with two more faults."""

    def __init__(self, name: str, config: Config, deps: Deps) -> None:
        super().__init__(name, config, deps.fault_source)
        self._place, self._faults = name, deps.fault_source

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        if fault != "drive_trip":
            return super().inject(fault, parameters, now)
        self.stop(now)
        self.note_error(5)
        return None

    def move_to(self, pose: Pose, now: int) -> Ticket | Refused:
        if (slip := self._faults.draw_fault("belt_slip", self._place, now)) is not None:
            pose = pose._replace(x=pose.x - slip.parameters["slip_mm"] * MM)
        return super().move_to(pose, now)


def build(name: str, config: Config, deps: Deps) -> WornRobot:
    return WornRobot(name, config, deps)


CELL = """
robots: {bench: {kind: worn_robot, faces: {text_tcp: {port: 0}}}}
scenario:
  rules:
    belt: {fault: belt_slip, on: bench, from_s: 1, parameters: {slip_mm: 2}}
    drive: {fault: drive_trip, on: bench, at_s: 10}
"""

registry.register("robots", "worn_robot", __name__)
file = Path(tempfile.mkdtemp()) / "worn.yaml"
file.write_text(CELL)
cell = understudy.load_cell(str(file))
client = cell.connect()


def go() -> tuple[bytes, bytes]:
    return client.ask(b"MOVE_ABS 100,0,100,0,0,0\n"), client.ask(b"GET_POS\n")


new = go()
cell.advance(1)
worn = go()
cell.advance(10)
tripped = go()
print(new, worn, tripped, sep="\n")
assert b"100.00," in new[1]
assert b"98.00," in worn[1]
assert tripped[0] == b"ERROR Robot in emergency stop state\n"

for outcome in Atlas(load_config(str(file)), ["belt_slip", "drive_trip"]).outcomes():
    print(outcome.fault, outcome.verdict, outcome.seen)
    assert outcome.verdict == "seen"
