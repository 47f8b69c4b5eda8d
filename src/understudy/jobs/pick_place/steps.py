"""The steps of which the states of the cycle are made, and which steps each state has.

A step is a value; `Work` carries the steps of a state out, one after the other, on the arm, the
gripper, vision and pins. A step that needs time waits for the end of a ticket, an input or a
deadline; the manager passes these in and is called back when the steps are done or one fails.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct

from understudy.errors import Refused
from understudy.jobs.pick_place.choice import Chosen, Unfit
from understudy.jobs.pick_place.config import CycleConfig, HandshakeStep, Insert, PinName
from understudy.jobs.pick_place.moves import Leg, above, line, scan_moves
from understudy.jobs.pick_place.safety import PickPlaceSafety
from understudy.jobs.pick_place.status import HAND_FAULT, PickPlaceError, PickPlaceState
from understudy.ports import Ticket
from understudy.ports.hand import Hand
from understudy.ports.io import PinChange
from understudy.ports.job_arm import ArmMotion, ReachCheck
from understudy.ports.object_finder import ObjectFinder
from understudy.ports.operation import Target
from understudy.space.pose import Pose
from understudy.units import MM, NS_PER_MS

if TYPE_CHECKING:
    from understudy.jobs.pick_place.manager import PickPlaceManager


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
    """Switches an output."""

    pin: PinName
    value: bool


class WaitInput(Struct, frozen=True, tag=True):
    """Waits until an input has a value. `timeout`: ns."""

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
    """What the job works with. `finder` and `pins`: None where the configuration needs none."""

    arm: ArmMotion
    hand: Hand
    finder: ObjectFinder | None = None
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
        self._arm, self._hand = equipment.arm, equipment.hand
        self._reach = reach

    def steps(
        self, state: PickPlaceState, target: Chosen | None, holding: bool, now: int
    ) -> list[Step] | Unfit:
        """The steps of a running state. ``target``: the part, from MOVE_TO_PICK on."""
        if state == "MOVE_TO_SCAN":
            return self._to_scan(now)
        if state == "SCANNING":
            return [Look()] if self._config.looks else []
        assert target is not None
        return _STEPS[state](self, target, holding)

    def go_on(self, part: Chosen, ended_in: PickPlaceState) -> list[Step]:
        """RETRACT_PICK of a run that was stopped in a state with the part in the hand, with the
        handshakes that had not begun."""
        shakes = self._shakes
        missed = handshake(shakes.at_pick) if ended_in == "GRIPPING" else []
        after = handshake(shakes.after_pick) if ended_in in ("GRIPPING", "RETRACT_PICK") else []
        return [*missed, *_moves(part, "RETRACT_PICK"), *after]

    def put_back(self, part: Chosen) -> list[Step]:
        """``part``: from `TargetChoice.from_hand`, on its way back."""
        legs: tuple[Leg, ...] = ("RETRACT_PICK", "MOVE_TO_PLACE", "APPROACH_PLACE")
        there = [step for leg in legs for step in _moves(part, leg)]
        return [*there, Release(), *_moves(part, "RETRACT_PLACE")]

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
        if self._hand.status(now).state != "OPENED":
            steps.append(Open())
        if not self._config.looks:
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


# ── carrying the steps out ────────────────────────────────────────────────────────────────────────


Waits = Literal["", "arm", "hand", "finder", "input", "retry", "contact"]
EMERGENCY_STOP = "emergency stop"


class WorkState(Struct):
    """The steps under way, in a snapshot. `waits`: what the present step waits for; `deadline`:
    until when."""

    steps: list[Step] = []
    step: int = 0
    waits: Waits = ""
    ticket: int = 0
    deadline: int | None = None
    problem: str = ""

    def reset(self, steps: Sequence[Step] = (), ticket: int = 0) -> None:
        """Other steps, none of which has begun."""
        self.steps, self.step, self.ticket = list(steps), 0, ticket
        self.waits, self.deadline, self.problem = "", None, ""


def arm_code(reason: str) -> PickPlaceError:
    return "EMERGENCY_STOP" if EMERGENCY_STOP in reason else "ARM_FAULT"


class Work:
    """The steps under way. The manager keeps `state` in its own."""

    def __init__(
        self,
        config: CycleConfig,
        safety: PickPlaceSafety,
        equipment: Equipment,
        manager: "PickPlaceManager",
    ) -> None:
        self._config = config
        self._safety = safety
        self._arm, self._hand = equipment.arm, equipment.hand
        self._finder, self._pins = equipment.finder, equipment.pins
        self._manager = manager
        self.state = WorkState()

    @property
    def under_way(self) -> bool:
        return bool(self.state.steps)

    @property
    def present(self) -> Step | None:
        state = self.state
        return state.steps[state.step] if state.step < len(state.steps) else None

    # ── steps ──

    def begin(self, steps: list[Step], now: int, *, ticket: int = 0) -> None:
        """``ticket``: of a move that brakes, for a first step `Rest`."""
        self.state.reset(steps, ticket)
        self._go_on(now)

    def step_done(self, now: int) -> None:
        state = self.state
        state.waits, state.ticket, state.deadline = "", 0, None
        state.step += 1
        self._go_on(now)

    def _go_on(self, now: int) -> None:
        """Carries out steps until one needs time or fails."""
        state = self.state
        while (step := self.present) is not None:
            if _CARRY_OUT[type(step)](self, step, now):
                return
            state.step += 1
        self.state.reset()
        self._manager.steps_done(now)

    def abandon(self, now: int) -> int:
        """Ends what is under way and changes no output; the ticket of a move that brakes now."""
        state = self.state
        moving = state.ticket if state.waits in ("arm", "contact") else 0
        if moving:
            self._arm.stop(now)
        if state.waits == "hand":
            self._hand.halt(now)
        if state.waits == "finder" and self._finder is not None:
            self._finder.cancel(now)
        self.state.reset()
        return moving

    def delay(self, time: int) -> None:
        """A pause does not count."""
        if self.state.deadline is not None:
            self.state.deadline += time

    # ── carrying steps out: True if the step needs time, or has failed ──

    def _move(self, step: Move | Touch, now: int) -> bool:
        ticket = self._arm.move(step.target, now)
        if isinstance(ticket, Refused):
            self._manager.step_failed(arm_code(ticket.reason), ticket.reason, now)
        else:
            self.state.waits, self.state.ticket = "arm", ticket
        return True

    def _touch(self, step: Touch, now: int) -> bool:
        if self._contact(now):
            self._manager.step_failed("NO_CONTACT", "the contact is on before the insert", now)
            return True
        self._move(step, now)
        if self.state.waits == "arm":
            self.state.waits = "contact"
            self._poll_force(now)
        return True

    def _poll_force(self, now: int) -> None:
        """An analog input reports no changes: it is read at the interval of the force monitor."""
        insert = self._config.insert
        if insert is not None and insert.force_input is not None:
            self.state.deadline = now + self._safety.monitor_interval

    def _rest(self, step: Rest, now: int) -> bool:
        self.state.waits = "arm"
        return True

    def _look(self, step: Look, now: int) -> bool:
        assert self._finder is not None
        ticket = self._finder.request(self._config.object_class_filter, now)
        if isinstance(ticket, Refused):
            self.look_later(ticket.reason, now)
        else:
            self.state.waits, self.state.ticket = "finder", ticket
            self.state.deadline = now + self._safety.answer_timeout
        return True

    def look_later(self, problem: str, now: int) -> None:
        """Vision has answered with an error, or not at all: another request follows."""
        state = self.state
        state.waits, state.ticket, state.problem = "retry", 0, problem
        state.deadline = now + round(self._config.scan_retry_ms * NS_PER_MS)

    def _grip(self, step: Grip, now: int) -> bool:
        started = self._hand.start_grip(now, timeout_ms=self._config.grip_timeout_ms)
        return self._await_hand(started, now)

    def _release(self, step: Release | Open, now: int) -> bool:
        started = self._hand.start_release(now, timeout_ms=self._config.grip_timeout_ms)
        return self._await_hand(started, now)

    def _open(self, step: Open, now: int) -> bool:
        if self._hand.status(now).part_detected:
            reason = "the hand reports a part that it should not have"
            self._manager.step_failed("PART_UNEXPECTED", reason, now)
            return True
        return self._release(step, now)

    def _await_hand(self, started: Ticket | Refused, now: int) -> bool:
        if isinstance(started, Refused):
            self._manager.step_failed(HAND_FAULT, started.reason, now)
        else:
            self.state.waits, self.state.ticket = "hand", started
        return True

    def _set_output(self, step: SetOutput, now: int) -> bool:
        assert self._pins is not None
        refused = self._pins.set_digital_output(step.pin, step.value, now)
        if refused is not None:
            self._manager.step_failed("OUTPUT_REFUSED", refused.reason, now)
        return refused is not None

    def _wait_input(self, step: WaitInput, now: int) -> bool:
        if self._input(step.pin) == step.value:
            return False
        self.state.waits, self.state.deadline = "input", now + step.timeout
        return True

    # ── what steps wait for ──

    def arm_ended(self, ticket: int, refused: str | None, now: int) -> None:
        state = self.state
        if ticket != state.ticket or state.waits not in ("arm", "contact"):
            return
        if state.waits == "contact":
            self._insert_ended(refused, now)
        elif refused is None or isinstance(self.present, Rest):
            self.step_done(now)
        else:
            state.waits, state.ticket = "", 0
            self._manager.step_failed(arm_code(refused), refused, now)

    def _insert_ended(self, refused: str | None, now: int) -> None:
        """The slow move has come to its end without a contact."""
        insert, state = self._config.insert, self.state
        assert insert is not None
        if refused is None and not insert.required:
            self.step_done(now)
            return
        state.waits, state.ticket = "", 0
        if refused is None:
            reason = "the place was reached without a contact"
            self._manager.step_failed("NO_CONTACT", reason, now)
        else:
            self._manager.step_failed(arm_code(refused), refused, now)

    def hand_ended(self, ticket: int, refused: str | None, now: int) -> None:
        state = self.state
        if state.waits != "hand" or ticket != state.ticket:
            return
        if isinstance(self.present, Grip):
            self._manager.grip_ended(refused, now)
        else:
            self._manager.release_ended(refused, now)

    def awaits_picture(self, ticket: int) -> bool:
        return self.state.waits == "finder" and ticket == self.state.ticket

    def awaits_input(self) -> bool:
        return self.state.waits in ("input", "contact")

    def deadline_come(self, now: int) -> None:
        state = self.state
        state.deadline = None
        if state.waits == "retry":
            state.waits = ""
            self._go_on(now)
        elif state.waits == "finder":
            assert self._finder is not None
            self._finder.cancel(now)
            longest = self._safety.answer_timeout / NS_PER_MS
            self.look_later(f"no answer in {longest:g} ms", now)
        elif state.waits == "contact":
            self._poll_force(now)
            self.look_at_inputs(now)
        else:
            step = self.present
            assert isinstance(step, WaitInput)
            waited = f"{step.pin} not {'on' if step.value else 'off'}"
            reason = f"{waited} in {step.timeout / NS_PER_MS:g} ms"
            self._manager.step_failed("HANDSHAKE_TIMEOUT", reason, now)

    def look_at_inputs(self, now: int) -> None:
        """Goes on if the input that a step waits for has its value."""
        state = self.state
        if state.waits == "contact" and self._contact(now):
            state.steps = [*state.steps[: state.step], Rest(), *state.steps[state.step + 1 :]]
            state.waits, state.deadline = "arm", None
            self._arm.stop(now)
        elif state.waits == "input":
            step = self.present
            assert isinstance(step, WaitInput)
            if self._input(step.pin) == step.value:
                self.step_done(now)

    def _contact(self, now: int) -> bool:
        insert, pins = self._config.insert, self._pins
        if insert is None or pins is None:
            return False
        if insert.contact is not None and self._input(insert.contact):
            return True
        channel = insert.force_input
        return channel is not None and pins.analog_input(channel, now) >= insert.force_volts

    def _input(self, pin: PinName) -> bool:
        assert self._pins is not None
        return self._pins.digital_input(pin)


_CARRY_OUT: Mapping[type, Callable[[Work, Any, int], bool]] = {
    Move: Work._move,
    Touch: Work._touch,
    Rest: Work._rest,
    Look: Work._look,
    Grip: Work._grip,
    Release: Work._release,
    Open: Work._open,
    SetOutput: Work._set_output,
    WaitInput: Work._wait_input,
}
