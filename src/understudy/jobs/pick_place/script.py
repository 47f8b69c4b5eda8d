"""The steps of each state of the cycle, and those of a retract."""

from collections.abc import Callable, Mapping

from understudy.jobs.pick_place.choice import Chosen, Unfit
from understudy.jobs.pick_place.config import CycleConfig
from understudy.jobs.pick_place.moves import Leg, above, line, scan_moves
from understudy.jobs.pick_place.safety import PickPlaceSafety
from understudy.jobs.pick_place.steps import (
    Grip,
    Look,
    Move,
    Open,
    Release,
    Step,
    handshake,
    insertion,
)
from understudy.jobs.pick_place.table import State
from understudy.jobs.pick_place.work import Equipment
from understudy.ports.pick_place import ReachCheck
from understudy.units import MM


class CycleScript:
    """Reads the configuration, the arm and the gripper; changes nothing."""

    def __init__(
        self,
        config: CycleConfig,
        safety: PickPlaceSafety,
        equipment: Equipment,
        reach: ReachCheck,
    ) -> None:
        self._config = config
        self._shakes = config.handshake
        self._safety = safety
        self._arm, self._gripper = equipment.arm, equipment.gripper
        self._reach = reach

    def steps(
        self, state: State, target: Chosen | None, holding: bool, now: int
    ) -> list[Step] | Unfit:
        """The steps of a running state. ``target``: the part, from MOVE_TO_PICK on."""
        if state == "MOVE_TO_SCAN":
            return self._to_scan(now)
        if state == "SCANNING":
            return [Look()] if self._config.source == "vision" else []
        assert target is not None
        return _STEPS[state](self, target, holding)

    # ── retract ──

    def up(self, target: Chosen | None, now: int) -> list[Step]:
        """Straight up to the safe height above the pick and the place of the part, without a part
        above the place position; nothing if the tool is as high already."""
        here = self._arm.tool(now)
        ends = [self._config.place_position.z * MM]
        if target is not None:
            ends = [target.poses.pick.z, target.poses.place.z]
        height = max(ends) + self._safety.retract_height
        if here.z >= height:
            return []
        return [Move(line(here._replace(z=height), self._config.approach_speed_mm_s))]

    def fallback(self) -> list[Step]:
        """To the position where the arm waits when vision fails."""
        at = self._config.fallback_position or self._config.scan_position
        return [Move(line(at.pose(), self._config.move_speed_mm_s))]

    # ── inside ──

    def _to_scan(self, now: int) -> list[Step] | Unfit:
        """Straight if the arm can; else point to point, as from a position after power-on."""
        steps: list[Step] = []
        if self._gripper.status(now).state != "OPENED":
            steps.append(Open())
        if self._config.source != "vision":
            return steps
        straight = [move.target for move in scan_moves(self._config)]
        if self._reach.check(straight, now) is None:
            return [*steps, *map(Move, straight)]
        by_joints = [target._replace(line=False) for target in straight]
        if refused := self._reach.check(by_joints, now):
            return Unfit(f"scan position: {refused.reason}", "OUT_OF_REACH")
        return [*steps, *map(Move, by_joints)]

    def _retract_pick(self, target: Chosen, holding: bool) -> list[Step]:
        moves = _moves(target, "RETRACT_PICK")
        return [*moves, *handshake(self._shakes.after_pick)] if holding else [Open(), *moves]

    def _approach_place(self, target: Chosen, holding: bool) -> list[Step]:
        insert, shakes = self._config.insert, handshake(self._shakes.at_place)
        if insert is None:
            return [*_moves(target, "APPROACH_PLACE"), *shakes]
        place = target.poses.place
        before = above(place, insert.distance_mm * MM, target.poses.place_axis)
        speed = self._config.approach_speed_mm_s * MM
        return [*insertion(insert, place, before, speed), *shakes]


def _moves(target: Chosen, leg: Leg) -> list[Step]:
    return [Move(move.target) for move in target.moves if move.leg == leg]


_STEPS: Mapping[State, Callable[[CycleScript, Chosen, bool], list[Step]]] = {
    "MOVE_TO_PICK": lambda script, target, holding: [
        *_moves(target, "MOVE_TO_PICK"), *handshake(script._shakes.before_pick),
    ],
    "APPROACH_PICK": lambda script, target, holding: _moves(target, "APPROACH_PICK"),
    "GRIPPING": lambda script, target, holding: [Grip(), *handshake(script._shakes.at_pick)],
    "RETRACT_PICK": CycleScript._retract_pick,
    "MOVE_TO_PLACE": lambda script, target, holding: [
        *_moves(target, "MOVE_TO_PLACE"), *handshake(script._shakes.before_place),
    ],
    "APPROACH_PLACE": CycleScript._approach_place,
    "RELEASING": lambda script, target, holding: [Release()],
    "RETRACT_PLACE": lambda script, target, holding: [
        *_moves(target, "RETRACT_PLACE"), *handshake(script._shakes.after_place),
    ],
}  # fmt: skip
