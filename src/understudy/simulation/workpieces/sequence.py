"""WorkpieceSequence: the parts of a cell step by step and without a clock, for offline checks.

Each step is a value: what is around the arm, what it holds, and the load at its flange. The rules
are those of the running cell; a part that falls has landed at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from understudy.ports.workpieces import Load, WorkpieceReading
from understudy.simulation.environment import CellEnvironment
from understudy.simulation.workpieces.config import WorkpieceConfig, WorkpieceRules
from understudy.simulation.workpieces.workpieces import Holder, Workpieces, load_of, solid
from understudy.space.model.environment import Environment
from understudy.space.model.shapes import CollisionObject
from understudy.space.pose import Pose
from understudy.space.transform import Array

ARM = "arm"


@dataclass(frozen=True)
class WorkpieceStage:
    """Between two steps. `environment`: objects, zones and resting parts. `held`: shapes in the
    frame of the flange. `load`: what the flange carries beside the tool. `events`: parts that
    dropped or tipped over in the step before."""

    environment: Environment
    held: tuple[CollisionObject, ...] = ()
    load: Load | None = None
    events: tuple[str, ...] = ()


def stage_of(
    parts: Workpieces, around: CellEnvironment, robot: str, events: tuple[str, ...] = ()
) -> WorkpieceStage:
    """What is around a robot and in its hand at present."""
    held = [r for r in parts.save().records if r.state == "held" and r.holder == robot]
    return WorkpieceStage(
        environment=around.with_parts(),
        held=tuple(solid(r.value, np.array(r.place), parts.margin) for r in held),
        load=load_of(held[0]) if held else None,
        events=events,
    )


class WorkpieceSequence:
    """The parts of a cell and the one arm that moves them."""

    def __init__(
        self, configs: Iterable[WorkpieceConfig], rules: WorkpieceRules, environment: Environment
    ) -> None:
        self._around = CellEnvironment(environment)
        self._parts = Workpieces(configs, rules)
        self._flange = np.eye(4)
        self._now = 0
        self._events: list[str] = []
        self._parts.join(self._around, {ARM: Holder(lambda now: self._flange)})
        self._parts.on_event(lambda event: self._events.append(event.text))

    def take(self, name: str, flange: Array) -> WorkpieceStage:
        """The arm takes a part; ``flange``: in the cell at that moment."""
        self._begin(flange)
        self._parts.take(name, ARM, self._now)
        return self._settled()

    def let_go(self, flange: Array) -> WorkpieceStage:
        """The arm puts its part down, or drops it."""
        self._begin(flange)
        self._parts.let_go(ARM, self._now)
        return self._settled()

    def near(self, tool: Pose, region: tuple[float, float, float]) -> tuple[str, ...]:
        """Names of the resting parts at the tool point; see `WorkpiecesInReach`."""
        return tuple(self._parts.near(tool, region, self._now))

    def readings(self) -> tuple[WorkpieceReading, ...]:
        return self._parts.status(self._now).parts

    def stage(self) -> WorkpieceStage:
        return stage_of(self._parts, self._around, ARM, tuple(self._events))

    def _begin(self, flange: Array) -> None:
        self._flange, self._events = flange, []

    def _settled(self) -> WorkpieceStage:
        """The stage after everything that falls has landed."""
        while (due := self._parts.next_wake()) is not None:
            self._now = due
            self._parts.wake(due)
        return self.stage()
