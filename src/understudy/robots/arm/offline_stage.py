"""The pins, devices and scenario of a cell beside an arm whose programs are checked offline.

They are the cell's own parts on virtual time, so that a checked program meets what a running one
would meet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from understudy.devices.io.offline import Pinboard, of_places
from understudy.devices.io.virtual_io import VirtualIO
from understudy.devices.mount import build_devices
from understudy.errors import Refused
from understudy.gcode import requests
from understudy.motion.path import Floats, Path
from understudy.motion.plan import Plan
from understudy.offline.setup import ARC_LEFT_ON, Met, Mover, Probed, Remark, Thrown
from understudy.offline.walk import spans_of
from understudy.ports.device import (
    DeviceEvent,
    FollowsTool,
    HasFindings,
    LeavesTrail,
    Mount,
    Process,
    ReportsEvents,
)
from understudy.ports.faults import Faults
from understudy.ports.io import PinChange
from understudy.robots.arm.config import FAULTS, Config
from understudy.robots.arm.mover import ArmMover
from understudy.robots.arm.probe import ContactProbe
from understudy.robots.arm.program_hooks import ARC_START, GAS
from understudy.simulation.collision.body import Body
from understudy.simulation.program.queue import ending_at
from understudy.simulation.scenario import Config as Rules
from understudy.simulation.scenario import build
from understudy.space.model.environment import Environment
from understudy.space.pose import Pose
from understudy.space.transform import pose
from understudy.units import NS_PER_MS, nanoseconds, seconds, whole_ns

COLD = NS_PER_MS
"""An arc may come so much late before its seam is called cold."""
NO_GAS = "the arc is started with the gas closed"
NO_TOUCH = "the probe meets nothing on its way"
TOUCHES = "the probe touches something before the move"
NO_TOUCH_YET = "the probe, that is to leave something, touches nothing before the move"
NO_ARC = "travels on the seam while the arc does not burn"
RAPID_ARC = "the arc burns on over a rapid"


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """The arm, and what stands around it for a whole program."""

    body: Body
    environment: Environment


class CellStage:
    """`Stage` of one arm; also the place on which the scenario's rules for the arm act.

    Without a ``room`` its collisions are not looked at, and a probe meets nothing.
    """

    def __init__(
        self,
        name: str,
        config: Config,
        devices: Mapping[str, Any],
        rules: Rules,
        seed: int,
        room: Room | None = None,
    ) -> None:
        mine = of_places(rules, (name, *(f"{name}.{kind}" for kind in ("io", *devices))))
        fault_source = build(mine, seed)
        self._board = board = Pinboard(VirtualIO(config.io), mine, f"{name}.io")
        self._arc_wait = config.arc_wait == "implicit"
        self._plan: Plan | None = None
        self.mover: ArmMover | None = None
        self._armed = self._assumed = self._ended = False
        self._cold: list[tuple[int, int]] = []
        self._cold_since: int | None = 0
        self._reported: dict[str, int] = {}
        self._probe = ContactProbe(room, self) if room else None
        board.io.on_change(self._pin_changed)
        self._process: Process | None = None
        self._devices = build_devices(name, devices, Mount(fault_source, board.io, self._way))
        for device in self._devices.values():
            if isinstance(device, Process):
                self._process = device
                device.on_process(self._process_changed)
            if isinstance(device, ReportsEvents):
                device.on_event(self._device_event)
        board.join(*self._devices.values())
        mounted = {f"{name}.{kind}": device for kind, device in self._devices.items()}
        fault_source.act_on({name: self, f"{name}.io": board.io, **mounted})
        board.join(fault_source)

    # ── stage ──

    def meet(self, request: requests.Request, line: int, now: float) -> Met:
        self._board.to(whole_ns(now))
        begun, remarks = self._board.now, self._news(line)
        if isinstance(request, requests.Dwell):
            self._board.to(self._board.now + nanoseconds(request.seconds))
        elif isinstance(request, requests.Spindle):
            remarks += self._spin(request, line)
        elif isinstance(request, requests.Coolant):
            self._board.io.set_digital_output(GAS, request.mist or request.flood, self._board.now)
        elif isinstance(request, requests.SetOutput | requests.SetAnalog):
            remarks += self._throw(request, line)
        elif isinstance(request, requests.WaitInput):
            remarks += self._wait(request, line)
        elif isinstance(request, requests.ProgramEnd):
            remarks += self._end(line)
        remarks += self._news(line)
        return Met(seconds(self._board.now - begun), tuple(remarks))

    def moved(self, plan: Plan, mover: Mover, thrown: Sequence[Thrown]) -> tuple[Remark, ...]:
        assert isinstance(mover, ArmMover)
        self._plan, self.mover = plan, mover
        line = int(plan.path.line[-1])
        remarks: list[Remark] = []
        for each in sorted(thrown, key=lambda one: one.time_s):
            self._board.to(whole_ns(each.time_s))
            remarks += self._throw(each.switch, each.line)
        self._board.to(whole_ns(plan.ends))
        for device in self._devices.values():
            if isinstance(device, FollowsTool):
                device.catch_up(self._board.now)
            if isinstance(device, LeavesTrail):
                device.clear_trail()
        self._take_faults()
        remarks += self._amiss(plan)
        return (*remarks, *self._news(line))

    def probed(self, probe: requests.Probe, path: Path, mover: Mover) -> Probed:
        assert isinstance(mover, ArmMover)
        contact_probe, self.mover = self._probe, mover
        if contact_probe is not None and len(path):
            if contact_probe.touches(path.shape[0, 0]) == probe.toward:
                return Probed(path.rows(0, 0), TOUCHES if probe.toward else NO_TOUCH_YET)
            place = contact_probe.answers(path, toward=probe.toward)
            if place is not None:
                return Probed(ending_at(path, place))
        return Probed(path, NO_TOUCH if probe.required else "")

    def over(self, line: int, now: float) -> tuple[Remark, ...]:
        self._board.to(whole_ns(now))
        return tuple(self._news(line) + ([] if self._ended else self._end(line)))

    # ── what a program asks for ──

    def _spin(self, request: requests.Spindle, line: int) -> list[Remark]:
        burns = request.direction != "M5"
        self._armed, self._ended = burns, False
        if not burns:
            self._assumed = False
        self._board.io.set_digital_output(ARC_START, burns, self._board.now)
        if burns and self._process is None and not self._board.io.digital_output(GAS):
            return [self._remark(line, "process", NO_GAS)]
        refused = self._wait_for_arc(burns) if self._arc_wait else None
        return [self._remark(line, "process", refused.reason)] if refused else []

    def _wait_for_arc(self, burns: bool) -> Refused | None:
        """Why the process cannot be switched on; a fault of its device is a remark already."""
        process = self._process
        if process is None:
            return None
        while not (met := process.reached(burns)) and not self._assumed:
            at = self._board.next_wake()
            if at is None:
                return None
            self._board.to(at)
            self._take_faults()
        told = self._assumed or self._board.events
        return met if isinstance(met, Refused) and not told else None

    def _throw(self, switch: requests.SetOutput | requests.SetAnalog, line: int) -> list[Remark]:
        refused = self._board.throw(switch)
        return [self._remark(line, "io", refused.reason)] if refused else []

    def _wait(self, request: requests.WaitInput, line: int) -> list[Remark]:
        of_device = self._board.io.owner(request.pin) == "device"
        if self._assumed and of_device and request.kind == "digital":
            return []
        said = self._board.wait(request)
        return [self._remark(line, "io", said)] if said else []

    def _end(self, line: int) -> list[Remark]:
        self._ended = True
        left = self._board.io.digital_output(ARC_START)
        remarks = [self._remark(line, "process", ARC_LEFT_ON)] if left else []
        self._armed = self._assumed = False
        for pin in (ARC_START, GAS):
            self._board.io.set_digital_output(pin, False, self._board.now)
        if self._arc_wait:
            self._wait_for_arc(False)
        return remarks

    # ── what becomes of it ──

    def _amiss(self, plan: Plan) -> list[Remark]:
        """Feed lines between M3 and M5 during which there was no arc, rapids with one."""
        cold, self._cold = self._cold, []
        if self._cold_since is not None:
            cold = [*cold, (self._cold_since, self._board.now)]
        if not self._armed or self._assumed:
            return []
        rapid = set(plan.path.line[plan.path.rapid].tolist())
        wanted = self._board.io.digital_output(ARC_START)
        out = []
        for line, (begins, ends) in spans_of(plan).items():
            first, last = whole_ns(begins), whole_ns(ends)
            without = [max(a, first) for a, b in cold if min(b, last) - max(a, first) > COLD]
            if line in rapid and wanted and not without:
                out.append(Remark(line, "process", RAPID_ARC, begins))
            elif line not in rapid and without:
                out.append(Remark(line, "process", NO_ARC, seconds(min(without))))
        return out

    def _news(self, line: int) -> list[Remark]:
        """What has happened since last time; while the arm moved, on the line it was on."""
        self._take_faults()
        events = self._board.take_events()
        for kind, device in self._devices.items():
            if isinstance(device, HasFindings):
                before = self._reported.get(kind, -1)
                fresh = [(at, said) for at, said in device.findings() if at > before]
                self._reported[kind] = max((at for at, _ in fresh), default=before)
                events += fresh
        return [Remark(self._line(at, line), "process", said, seconds(at)) for at, said in events]

    def _take_faults(self) -> None:
        """Resets a failed process, which is a remark already; up to M5 it is assumed to be on."""
        if self._process is not None and self._process.failure():
            self._process.reset(self._board.now)
            self._assumed = True

    def _line(self, at: int, otherwise: int) -> int:
        plan = self._plan
        return (plan.line_at(seconds(at)) if plan else None) or otherwise

    def _remark(self, line: int, kind: Literal["process", "io"], said: str) -> Remark:
        return Remark(line, kind, said, self._board.seconds())

    # ── listening ──

    def _process_changed(self, now: int) -> None:
        assert self._process is not None
        self._burn(self._process.running, now)

    def _device_event(self, event: DeviceEvent) -> None:
        if event.alarm:
            self._board.note(event.at, event.alarm)

    def _pin_changed(self, change: PinChange) -> None:
        if self._process is None and change.bank == "DO" and change.pin == ARC_START:
            self._burn(change.value, change.at)

    def _burn(self, burns: bool, now: int) -> None:
        if burns and self._cold_since is not None:
            self._cold.append((self._cold_since, now))
            self._cold_since = None
        elif not burns and self._cold_since is None:
            self._cold_since = now

    def _way(self, times: Floats) -> Floats:
        if self._plan is None or self.mover is None:
            return np.zeros((len(times), 3))
        tips = self.mover.chain.flanges(self._plan.positions(times), self.mover.frames)
        return np.ascontiguousarray(tips[:, :3, 3])

    # ── the arm, as a scenario sees it ──

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        return self._board.cut_off(fault, parameters, now)

    def busy(self) -> bool:
        return self._plan is not None and self._board.now < whole_ns(self._plan.ends)

    def tcp(self, now: int) -> Pose:
        if self._plan is None or self.mover is None:
            return Pose(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        here = self._plan.at(seconds(now)).position
        return pose(self.mover.frames.tcp(self.mover.chain.flange(here)))
