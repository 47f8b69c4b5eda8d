"""Commands and queries of the pick & place cycle, its hand and its pallets."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any
from weakref import WeakKeyDictionary

from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.jobs.pick_place.pallet import PalletPattern
from understudy.jobs.pick_place.state import CYCLE, RUNNING, TRANSITIONS
from understudy.operator.robots import CellTime, Jobs, Robot
from understudy.operator.table import Command, command, commands_of, query
from understudy.ports.hand import Hand
from understudy.ports.modes import CHANGEOVER_STEPS
from understudy.ports.workpieces import WorkpieceReading

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell
    from understudy.simulation.workpieces.workpieces import Workpieces

CYCLES_KEPT = 60
CycleCount = Annotated[int, Meta(ge=-1, le=1_000_000_000)]
PlaceIndex = Annotated[int, Meta(ge=0, le=1_000_000_000)]
LayerIndex = Annotated[int, Meta(ge=0, le=1000)]
ChangePallet = Callable[[PalletPattern, int], Refused | None]


def commands(cell: "OperatedCell") -> list[Command]:
    cycles = Jobs(cell.robots, PickPlaceManager, "pick_place")
    pallets = Pallets(cell, cycles)
    found = commands_of(CycleCommands(cell, cycles)) if cycles else []
    return found + (commands_of(pallets) if pallets else [])


class Cycle(Struct, frozen=True):
    """A cycle that has ended. `seconds`: 0 for one that failed; `code`: why it failed."""

    number: int
    success: bool
    seconds: float
    code: str


class CycleCommands:
    """The cycle of a robot and its hand. `robot` can be left out if one robot has such a job."""

    def __init__(self, cell: "OperatedCell", cycles: Jobs[PickPlaceManager]) -> None:
        self._cycles = cycles
        self._hands = Jobs(cell.robots, Hand, "hand")
        self._kept: WeakKeyDictionary[PickPlaceManager, deque[Cycle]] = WeakKeyDictionary()
        self._log = cell.log
        cycles.each(self._follow)

    @query()
    def pick_place(self, robot: str = "") -> Any:
        """State, counts and target of the cycle."""
        return self._cycles.look(robot)

    @command()
    def start_pick_place(self, robot: str = "", max_cycles: CycleCount = -1) -> Any:
        """Run cycle after cycle; with the part of a stopped run in the hand, go on with it.

        `max_cycles`: -1 means without an end.
        """
        return self._cycles.act(robot, lambda job, now: job.start(now, max_cycles=max_cycles))

    @command()
    def single_pick_place(self, robot: str = "") -> Any:
        """Run one cycle."""
        return self._cycles.act(robot, lambda job, now: job.start(now, max_cycles=1))

    @command()
    def finish_pick_place(self, robot: str = "") -> Any:
        """Finish the present cycle, then end the run."""
        return self._cycles.act(robot, PickPlaceManager.finish)

    @command()
    def put_back_part(self, robot: str = "") -> Any:
        """Put the part of a stopped run back where it was picked."""
        return self._cycles.act(robot, PickPlaceManager.put_back)

    @command()
    def stop_pick_place(self, robot: str = "") -> Any:
        """End the run; a held part stays."""
        return self._cycles.act(robot, PickPlaceManager.stop)

    @command()
    def pause_pick_place(self, robot: str = "") -> Any:
        """Feed hold."""
        return self._cycles.act(robot, PickPlaceManager.pause)

    @command()
    def resume_pick_place(self, robot: str = "") -> Any:
        """Go on after a pause."""
        return self._cycles.act(robot, PickPlaceManager.resume)

    @command()
    def reset_pick_place(self, robot: str = "") -> Any:
        """Clear the fault."""
        return self._cycles.act(robot, PickPlaceManager.reset)

    @command()
    def retract_pick_place(self, robot: str = "") -> Any:
        """Tool straight up to the safe height."""
        return self._cycles.act(robot, PickPlaceManager.emergency_retract)

    @command()
    def grip_part(self, robot: str = "") -> Any:
        """Close the hand, if no cycle runs."""
        found = self._hands.find(robot)

        def grip(job: PickPlaceManager, now: int) -> Refused | None:
            if isinstance(found, Refused):
                return Refused("the robot has no hand")
            if refused := job.occupied(now):
                return refused
            ticket = found[1].start_grip(now)
            return ticket if isinstance(ticket, Refused) else None

        return self._cycles.act(robot, grip)

    @command()
    def release_part(self, robot: str = "") -> Any:
        """Open the hand, if no cycle runs."""
        return self._cycles.act(robot, PickPlaceManager.release_part)

    # ── for pages ──

    @query()
    def job_tables(self) -> dict[str, Any]:
        """States and transitions of the jobs."""
        return {
            "running": RUNNING,
            "cycle": _edges(CYCLE),
            "transitions": _edges(TRANSITIONS),
            "changeover": CHANGEOVER_STEPS,
        }

    @query()
    def pick_place_cycles(self, robot: str = "") -> Any:
        """The last cycles."""

        def cycles(of: Robot, job: PickPlaceManager) -> dict[str, Any]:
            count = of.side_of(job).time.act(job.status).cycle_count
            rows = [cycle for cycle in self._kept[job] if cycle.number <= count]
            return {"robot": of.name, "cycles": rows}

        return self._cycles.ask(robot, cycles)

    def _follow(self, name: str, job: PickPlaceManager, cell_time: CellTime) -> None:
        kept = self._kept[job] = deque(maxlen=CYCLES_KEPT)

        def ended(number: int, success: bool, now: int) -> None:
            while kept and kept[-1].number >= number:  # the cell was restored to an earlier state
                kept.pop()
            status = job.status(now)
            lasted = status.statistics.last_s if success else 0.0
            kept.append(Cycle(number, success, lasted, status.code or status.reason))
            fault = status.state == "ERROR"
            outcome = "done" if success else f"failed: {status.last_error}"
            kind = "alarm" if fault and not success else "pick_place"
            self._log.note(kind, name, f"cycle {number} {outcome}", cell_time(now))

        job.on_cycle(ended)


def _edges(table: Mapping[tuple[Any, Any], Any]) -> list[list[str]]:
    """Rows of state, event and next state."""
    return [[state, event, after] for (state, event), after in table.items()]


# ── pallets ─────────────────────────────────────────────────────────────────────────────────────


class Pallets:
    """The pallets of robots. `source`: the pallet from which the parts are taken, not the one to
    which they go."""

    def __init__(self, cell: "OperatedCell", cycles: Jobs[PickPlaceManager]) -> None:
        robots = cell.robots
        self._target = Jobs(robots, PalletPattern, "pallet", name=".pallet")
        self._source = Jobs(robots, PalletPattern, "source_pallet", name=".source_pallet")
        self._cycles = cycles
        self._workpieces: Workpieces | None = cell.workpieces

    def __bool__(self) -> bool:
        return bool(self._target) or bool(self._source)

    @query()
    def pallet(self, robot: str = "", source: bool = False) -> Any:
        """Size, pattern and next place."""
        return self._kind(source).look(robot)

    @command()
    def set_pallet_index(self, robot: str = "", source: bool = False, *, index: PlaceIndex) -> Any:
        """Go on at a place of the pallet.

        `index`: the number of places that are done; the place after them is next.
        """
        return self._change(robot, source, lambda pallet, now: pallet.skip_to_position(index))

    @command()
    def set_pallet_layer(self, robot: str = "", source: bool = False, *, layer: LayerIndex) -> Any:
        """Go on at a layer of the pallet."""
        return self._change(robot, source, lambda pallet, now: pallet.set_layer(layer))

    @command()
    def reset_pallet(self, robot: str = "", source: bool = False, clear: bool = False) -> Any:
        """Begin the pallet again.

        `clear`: takes the simulated parts that lie on the pallet out of the cell.
        """

        def reset(pallet: PalletPattern, now: int) -> None:
            pallet.reset()
            if clear and self._workpieces is not None:
                for name in parts_on(pallet, self._workpieces.status(now).parts):
                    self._workpieces.remove(name, now)

        return self._change(robot, source, reset)

    @query(large=True)
    def pallet_layer(
        self,
        robot: str = "",
        source: bool = False,
        layer: Annotated[int, Meta(ge=-1, le=1000)] = -1,
    ) -> Any:
        """The places of one layer of a pallet.

        `layer`: -1 means the one that is next.
        """

        def places(of: Robot, pallet: PalletPattern) -> dict[str, Any] | Refused:
            layout, last = pallet.layout, pallet.layout.config.layers - 1
            shown = pallet.get_current_layer() if layer < 0 else layer
            if shown > last:
                return Refused(f"there is no layer {shown}; allowed: 0…{last}")
            (of_layer,) = (layout.cells[:, 2] == shown).nonzero()
            rows = zip(of_layer.tolist(), layout.cells[of_layer, :2].tolist(), strict=True)
            return {
                "robot": of.name,
                "layer": shown,
                "layers": last + 1,
                "rows": layout.config.rows,
                "columns": layout.config.columns,
                "depalletise": layout.config.depalletise,
                "places": [[index, *place] for index, place in rows],
                "unreachable": pallet.unreachable,
            }

        return self._kind(source).ask(robot, places)

    def _kind(self, source: bool) -> Jobs[PalletPattern]:
        return self._source if source else self._target

    def _change(self, robot: str, source: bool, change: ChangePallet) -> Any:
        """Changes a pallet; refused while the cycle uses it."""
        found = self._cycles.find(robot)
        job = None if isinstance(found, Refused) else found[1]

        def act(pallet: PalletPattern, now: int) -> Refused | None:
            if job is not None and job.is_running():
                return Refused("the pick & place cycle is running: stop it first")
            return change(pallet, now)

        return self._kind(source).act(robot, act)


def parts_on(pallet: PalletPattern, parts: Iterable[WorkpieceReading]) -> list[str]:
    """Parts that lie on a place of a pallet: their centre is over or under it."""
    places = [pallet.layout.pose(index) for index in range(pallet.get_total_positions())]
    return [
        part.name
        for part in parts
        if not part.holder
        and any(
            math.hypot(part.pose.x - at.x, part.pose.y - at.y) <= 0.5 * max(part.size[:2])
            for at in places
        )
    ]
