"""A welding cell without a display: an hour of seam after seam; and the cost of its plots' record.

The peer is the stepping loop of the design document, for motion alone: a P controller with limits
for six joints, 1 kHz, in plain Python.
"""

import asyncio
from time import process_time

import understudy
from benchmarks import Row
from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.devices.welder.welder import Welder
from understudy.operator.background import Slices
from understudy.operator.history import History
from understudy.operator.robots import Robots
from understudy.robots.arm.controller import ArmController
from understudy.simulation.cell import Cell
from understudy.units import NS_PER_MS, NS_PER_SECOND
from understudy.wire.exchange import Exchange
from understudy.wire.pump import Pump

HOUR = 3600 * NS_PER_SECOND
SEAMS = """G90 G21
G0 X450 Y-100 Z450 A180 B0 C0
G0 X450 Y-100 Z350 A180 B0 C0
M7
M3
G1 Y100 F600
M5
M9
G0 X450 Y100 Z450 A180 B0 C0""".splitlines()
"""200 mm at 10 mm/s, with the moves there and back."""


def weld(duration: int = HOUR) -> tuple[float, float, int]:
    """CPU seconds, metres of seam, and wakes of this many simulated nanoseconds."""
    cell = understudy.load_cell("g60_welding")
    assert isinstance(cell.timed_cell, Cell)
    robot, welder = cell.timed_cell.components["g60"], cell.timed_cell.components["g60.welder"]
    assert isinstance(robot, ArmController)
    assert isinstance(welder, Welder)
    robot.connect(0)
    robot.enable(0)
    begun, wakes = process_time(), 0
    while (now := cell.timed_cell.now) < duration:
        if not robot.busy():
            for line in SEAMS:
                assert robot.send_gcode(line, now) is None
        at = cell.timed_cell.next_wake()
        assert at is not None
        cell.advance_to(min(at, duration))
        wakes += 1
    status = welder.status(cell.timed_cell.now)
    return process_time() - begun, status.total_weld_length_mm / 1e3, wakes


def stepped(steps: int) -> float:
    """CPU seconds of this many steps of the document's loop."""
    positions, velocities, dt = [0.0] * 6, [0.0] * 6, 1e-3
    begun = process_time()
    for step in range(steps):
        target = 1.0 if step // 3000 % 2 else -1.0
        for i in range(6):
            wanted = min(max((target - positions[i]) * 10.0, -2.0), 2.0)
            acceleration = min(max((wanted - velocities[i]) / dt, -8.0), 8.0)
            velocities[i] += acceleration * dt
            positions[i] += velocities[i] * dt
    return process_time() - begun


def recorded(duration: int, *, record: bool) -> float:
    """CPU seconds of the same work on the pump of a live cell, with or without its record."""

    async def run() -> float:
        config = load_config("g60_welding")
        cell = build_cell(config)
        cell.clock_state.pause()
        pump = Pump(Exchange(cell), cell.clock_state)
        if record:
            History(Robots(config, cell.components, pump), cell, pump, Slices())
        robot = cell.components["g60"]
        assert isinstance(robot, ArmController)
        robot.connect(0)
        robot.enable(0)
        pump.advance(NS_PER_SECOND)  # loads kernels
        begun = process_time()
        while (now := cell.now) < duration:
            if not robot.busy():
                for line in SEAMS:
                    assert robot.send_gcode(line, now) is None
            at = cell.next_wake()
            assert at is not None
            pump.advance(max(min(at, duration) - now, 1))
        return process_time() - begun

    return asyncio.run(run())


def recording() -> list[Row]:
    """An hour in one go, and the minutes in which the record has its full rate."""
    found = []
    for name, duration, aim in (("2 min", 120 * NS_PER_SECOND, ""), ("an hour", HOUR, "≤ 1.5")):
        bare, ours = (
            min(recorded(duration, record=each) for _ in range(3)) for each in (False, True)
        )
        what = f"record for plots, {name} of welding"
        found.append(Row(what, f"{ours:.2f} s", f"{bare:.2f} s without", f"{ours / bare:.2f}", aim))
        share = (ours - bare) / (duration / NS_PER_SECOND)
        found.append(Row(f"{what}, at real time", f"{share:.2%} of a core", "", "", "≤ 1 %"))
    return found


def rows() -> list[Row]:
    weld(60 * NS_PER_SECOND)
    ours, metres, wakes = weld()
    peer = stepped(HOUR // NS_PER_MS // 60) * 60
    what = f"an hour of welding: {metres:.1f} m of seam, {wakes} wakes"
    hour = Row(what, f"{ours:.2f} s", f"{peer:.0f} s stepped", f"{peer / ours:.0f}×", "< 2 s")
    return [hour, *recording()]


if __name__ == "__main__":
    for row in rows():
        print(*row, sep="  ")
