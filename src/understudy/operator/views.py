"""The state of a live cell at this moment, for the doors that show it."""

from collections.abc import Callable, Mapping

from msgspec import structs

from understudy.agenda import ClockState
from understudy.errors import Refused
from understudy.operator.workpieces import workpieces_in
from understudy.ports import Component
from understudy.ports.device import HasFingers
from understudy.ports.hmi import (
    NO_GROUP,
    CellView,
    GroupFrame,
    HasSeenTogether,
    Known,
    RobotView,
    Touching,
    Trailing,
    Viewed,
)
from understudy.ports.program import ProgramReadings
from understudy.units import seconds
from understudy.wire.pump import Pump


class CellWatch:
    """`Watch` of a cell's parts, in the order of the cell file."""

    def __init__(
        self,
        components: Mapping[str, Component],
        pump: Pump,
        clock_state: ClockState,
        real: Callable[[], Mapping[str, RobotView]] = dict,
    ) -> None:
        self._pump = pump
        self._clock_state = clock_state
        self._real = real
        shown = (c.seen_together for c in components.values() if isinstance(c, HasSeenTogether))
        self._group = next(shown, None)
        together = set() if self._group is None else set(self._group.names())
        self._robots = {
            name: component
            for name, component in components.items()
            if isinstance(component, Viewed) and name not in together
        }
        self._trails = {
            name.partition(".")[0]: component
            for name, component in components.items()
            if isinstance(component, Trailing)
        }
        self._touching = {
            name.partition(".")[0]: component
            for name, component in components.items()
            if isinstance(component, Touching)
        }
        self._programs: dict[str, ProgramReadings] = {}
        for name in self._robots:
            program: object = components.get(f"{name}.program")
            if isinstance(program, ProgramReadings):
                self._programs[name] = program
        self._workpieces = workpieces_in(components)
        self._fingers = {
            name.partition(".")[0]: component
            for name, component in components.items()
            if isinstance(component, HasFingers) and component.fingers() is not None
        }
        self._seq = 0

    def _views(self, now: int) -> dict[str, RobotView]:
        """Mobile robots, which may be many, are read together."""
        views = {name: self._view(name, now) for name in self._robots}
        if self._group is not None:
            views.update(self._group.views())
        return views | dict(self._real())

    def _view(self, name: str, now: int) -> RobotView:
        """The view of a robot; its line is that of the file that runs, 0 if none does."""
        view, program = self._robots[name].view(now), self._programs.get(name)
        if name in self._fingers:
            view = structs.replace(view, opening=self._fingers[name].opening(now))
        if program is None:
            return view
        line = program.reading(now).line if program.under_way() else 0
        return structs.replace(view, line=line)

    def look_at_group(self) -> GroupFrame | Refused:
        if self._group is None:
            return NO_GROUP
        self._seq += 1
        columns, link = self._group.columns(), self._group.link()
        return GroupFrame(
            seq=self._seq,
            t=seconds(self._pump.now()),
            real=self._pump.real_seconds(),
            rate=self._clock_state.running_rate,
            floor=self._group.floor_version(),
            connected=link.connected,
            waiting=link.waiting,
            count=len(columns.pose),
            **{name: column.tobytes() for name, column in columns._asdict().items()},
        )

    def look(self, trail_from: Mapping[str, Known] | None = None) -> CellView:
        return self.look_at(self._pump.now(), trail_from)

    def look_at(self, now: int, trail_from: Mapping[str, Known] | None = None) -> CellView:
        """The view at ``now``, the present time of the cell."""
        self._seq += 1
        known = trail_from or {}
        trails = {} if trail_from is None else self._trails
        return CellView(
            seq=self._seq,
            t=seconds(now),
            real=self._pump.real_seconds(),
            rate=self._clock_state.running_rate,
            robots=self._views(now),
            trail={name: robot.trail_since(known.get(name, 0)) for name, robot in trails.items()},
            contacts=[
                {"robot": name, "link": contact.link, "object": contact.object}
                for name, watch in self._touching.items()
                for contact in watch.uncleared()
            ],
            parts=0 if self._workpieces is None else self._workpieces.version,
        )
