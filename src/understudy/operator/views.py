"""The state of a live cell at this moment, for the doors that show it."""

from collections.abc import Callable, Mapping

from understudy.ports import Part
from understudy.ports.hmi import CellView, Known, RobotView, Touching, Trailing, Viewed
from understudy.simulation.clock_state import ClockState
from understudy.units import seconds
from understudy.wire.pump import Pump


class CellWatch:
    """`Watch` of a cell's parts, in the order of the cell file."""

    def __init__(
        self,
        parts: Mapping[str, Part],
        pump: Pump,
        clock_state: ClockState,
        real: Callable[[], Mapping[str, RobotView]] = dict,
    ) -> None:
        self._pump = pump
        self._clock_state = clock_state
        self._real = real
        self._robots = {name: part for name, part in parts.items() if isinstance(part, Viewed)}
        self._trails = {
            name.partition(".")[0]: part
            for name, part in parts.items()
            if isinstance(part, Trailing)
        }
        self._touching = {
            name.partition(".")[0]: part
            for name, part in parts.items()
            if isinstance(part, Touching)
        }
        self._seq = 0

    def look(self, trail_from: Mapping[str, Known] | None = None) -> CellView:
        self._seq += 1
        now = self._pump.now()
        known = trail_from or {}
        trails = {} if trail_from is None else self._trails
        return CellView(
            seq=self._seq,
            t=seconds(now),
            real=self._pump.real_seconds(),
            rate=self._clock_state.running_rate,
            robots={name: robot.view(now) for name, robot in self._robots.items()}
            | dict(self._real()),
            trail={name: robot.trail_since(known.get(name, 0)) for name, robot in trails.items()},
            contacts=[
                {"robot": name, "link": contact.link, "object": contact.object}
                for name, watch in self._touching.items()
                for contact in watch.uncleared()
            ],
        )
