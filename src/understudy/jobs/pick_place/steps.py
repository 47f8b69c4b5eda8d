"""The steps of which the states of the cycle are made, and which steps each state has.

A step is a value; `work` carries the steps of a state out, one after the other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from understudy.errors import Refused
from understudy.jobs.pick_place.choice import Chosen, Unfit
from understudy.jobs.pick_place.config import CycleConfig, HandshakeStep, Insert, PinName
from understudy.jobs.pick_place.moves import Leg, above, line, scan_moves
from understudy.jobs.pick_place.safety import PickPlaceSafety
from understudy.ports.io import PinChange
from understudy.ports.operation import Target
from understudy.ports.pick_place import ArmMotion, Gripper, PickPlaceState, ReachCheck
from understudy.ports.vision import Vision
from understudy.space.pose import Pose
from understudy.units import MM, NS_PER_MS


class Move(Struct, frozen=True, tag=True):
    """One move of the arm, to its end."""

    target: Target


class Touch(Struct, frozen=True, tag=True):
    """A slow move that ends at a contact, or fails at its end."""

    target: Target


class Rest(Struct, frozen=True, tag=True):
    """Waits until the arm, which was stopped, has come to rest."""


class Look(Struct, frozen=True, tag=True):
    """One request to vision."""


class Grip(Struct, frozen=True, tag=True):
    """Closes the hand on a part."""


class Release(Struct, frozen=True, tag=True):
    """Puts down the part that the hand has."""


class Open(Struct, frozen=True, tag=True):
    """Opens a hand that has no part; a fault if it has one."""


class SetOutput(Struct, frozen=True, tag=True):
    pin: PinName
    value: bool


class WaitInput(Struct, frozen=True, tag=True):
    """`timeout`: ns."""

    pin: PinName
    value: bool
    timeout: int


Step = Move | Touch | Rest | Look | Grip | Release | Open | SetOutput | WaitInput


def handshake(steps: tuple[HandshakeStep, ...]) -> list[Step]:
    """The steps of one list of the section `handshake`."""
    found: list[Step] = []
    for step in steps:
        if step.set is not None:
            found.append(SetOutput(step.set, step.value))
        if step.wait is not None:
            found.append(WaitInput(step.wait, step.value, round(step.timeout_ms * NS_PER_MS)))
    return found


def insertion(insert: Insert, place: Pose, before: Pose, speed: float) -> list[Step]:
    """The approach to the place with a contact at its end: ``before`` is where the slow move
    begins, ``speed`` (m/s) that of the move to it."""
    return [
        Move(Target(None, before, True, speed)),
        Touch(Target(None, place, True, insert.speed_mm_s * 1e-3)),
    ]


# ── what the job works with ──


class JobPins(Protocol):
    """The pins of a controller, by number or name."""

    def digital_input(self, pin: PinName, /) -> bool: ...

    def digital_output(self, pin: PinName, /) -> bool: ...

    def analog_input(self, channel: PinName, now: int, /) -> float: ...

    def set_digital_output(self, pin: PinName, value: bool, now: int, /) -> Refused | None: ...

    def on_change(self, listener: Callable[[PinChange], None], /) -> None: ...


@dataclass(frozen=True)
class Equipment:
    """What the job works with. `vision` and `pins`: None where the configuration needs none."""

    arm: ArmMotion
    gripper: Gripper
    vision: Vision | None = None
    pins: JobPins | None = None


# ── the steps of each state ───────────────────────────────────────────────────────────────────────


class CycleScript:
    """The steps of each state, and those of a retract. It reads the configuration, the arm and the
    gripper, and changes nothing."""

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
        self, state: PickPlaceState, target: Chosen | None, holding: bool, now: int
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


_STEPS: Mapping[PickPlaceState, Callable[[CycleScript, Chosen, bool], list[Step]]] = {
    "MOVE_TO_PICK": lambda script, target, holding: [
        *_moves(target, "MOVE_TO_PICK"),
        *handshake(script._shakes.before_pick),
    ],
    "APPROACH_PICK": lambda script, target, holding: _moves(target, "APPROACH_PICK"),
    "GRIPPING": lambda script, target, holding: [Grip(), *handshake(script._shakes.at_pick)],
    "RETRACT_PICK": CycleScript._retract_pick,
    "MOVE_TO_PLACE": lambda script, target, holding: [
        *_moves(target, "MOVE_TO_PLACE"),
        *handshake(script._shakes.before_place),
    ],
    "APPROACH_PLACE": CycleScript._approach_place,
    "RELEASING": lambda script, target, holding: [Release()],
    "RETRACT_PLACE": lambda script, target, holding: [
        *_moves(target, "RETRACT_PLACE"),
        *handshake(script._shakes.after_place),
    ],
}
