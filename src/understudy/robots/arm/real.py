"""A REAL arm: a grblHAL driver with the joints of the simulated arm, and programs as the joint
lines that a real grblHAL understands.

    G1 X400 Y100 F600      becomes    G53G1X14.0362Y3.1F812.5
                                      G53G1X14.0514Y3.2F809.1    …

The host interprets offsets, units, tools and inverse kinematics. A path of the tool is cut into
chords that stay within `CHORD` of it, each with the feed that keeps the tool's speed. Pins, dwells,
spindle and program end are sent as they are.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from understudy.config import CellConfig
from understudy.errors import Refused
from understudy.gcode import Modal, Problem, interpret, parse, requests
from understudy.gcode.actions import WAIT_MODES
from understudy.gcode.dialect import AXIS_LETTERS, Axes
from understudy.gcode.error_numbers import UNSUPPORTED
from understudy.gcode.requests import move_of
from understudy.motion.path import Floats, Path
from understudy.offline.setup import Mover, Setup
from understudy.ports import Joints
from understudy.ports.operation import RealClient
from understudy.robots.arm.controller import ArmController
from understudy.robots.arm.offline import motion_setup
from understudy.robots.arm.operator import ArmActions, real_job_arm
from understudy.robots.grblhal.driver import Config as GrblHalConfig
from understudy.robots.grblhal.driver import GrblHalDriver, build
from understudy.robots.grblhal.driver.pins import PolledPins
from understudy.robots.grblhal.language import GcodeLanguage
from understudy.simulation.program.run import ProgramRun
from understudy.space.pose import Pose
from understudy.units import DEG, MINUTE, MM

CHORD = 1e-5
"""Radians by which a joint may deviate in the middle of a chord: 0.01 mm at one metre."""
PREAMBLE = "G21G90G94"
"""Modes that the lines need. G53 in each move makes it independent of offsets."""
REST = "G4P0"
NO_PROBING = Refused("a program that the host turns into joint lines cannot probe", UNSUPPORTED)
_NOT_SENDABLE = re.compile(r"[^ -~]|[?!~()]")


class JointLines:
    """`LineWriter`: remembers modes, tool and position from line to line."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._modal: Modal = setup.modal
        self._mover: Mover = setup.mover
        self._exact = setup.modal.path != "G64"
        self._begins = True
        self.start_from(setup.start or (0.0,) * len(setup.mover.limits.velocity))

    def start_from(self, joints: Joints) -> None:
        self._q: Floats = np.array(joints)
        self._commanded: Axes | None = None
        self._begins = True

    def tip(self, joints: Joints) -> Pose:
        """The pose of the tool at these joints (m, rad)."""
        x, y, z, *angles = self._mover.pose(np.array(joints))
        return Pose(x * MM, y * MM, z * MM, *(angle * DEG for angle in angles))

    @property
    def tool(self) -> int:
        """The number of the tool that the lines move."""
        return self._modal.tool

    # ── `Position` of the interpreter ──

    @property
    def axes(self) -> Axes:
        return self._commanded or self._mover.axes(self._q)

    @property
    def pose(self) -> Axes:
        return self._mover.pose(self._q)

    # ── lines ──

    def written(self, text: str, number: int) -> list[str] | Refused:
        """The joint lines of one line; a line that is refused changes no state."""
        block = parse(text, self._setup.dialect, line=number)
        if isinstance(block, Problem):
            return block.refused()
        step = interpret(block, self._modal, dialect=self._setup.dialect, position=self)
        if isinstance(step, Refused):
            return step
        if step.refusal is not None:
            return step.refusal.refused
        before = self._q, self._mover, self._exact, self._commanded
        lines: list[str] = [PREAMBLE] if self._begins and step.requests else []
        for request in step.requests:
            more = self._write(request, number)
            if isinstance(more, Refused):
                self._q, self._mover, self._exact, self._commanded = before
                return Refused(f"line {number}: {more.reason} ({text.strip()})", more.code)
            lines += more
        self._begins = self._begins and not lines
        self._modal = step.modal
        self._commanded = step.axes if step.axes is not None else self._commanded
        return lines

    def _write(self, request: requests.Request, number: int) -> list[str] | Refused:
        if isinstance(request, requests.Probe):
            return NO_PROBING
        if (move := move_of(request)) is not None:
            return self._move(move, number)
        if isinstance(request, requests.PathMode):
            self._exact = request.name != "G64"
        elif isinstance(request, requests.ToolChange) and (refused := self._mount(request.tool)):
            return refused
        plain = PLAIN.get(type(request))
        return [] if plain is None else list(plain(request))

    def _move(self, move: requests.Move, number: int) -> list[str] | Refused:
        path = self._mover.path(move, self._q, line=number, exact=False)
        if isinstance(path, Refused):
            return path
        self._commanded = None
        if not len(path):
            return []
        lines = list(_chords(path, self._q, self._mover))
        self._q = path.end[-1]
        return [*lines, REST] if self._exact and lines else lines

    def _mount(self, tool: int) -> Refused | None:
        mover = self._setup.mount(tool) if self._setup.mount else self._mover
        if isinstance(mover, Refused):
            return mover
        self._mover = mover
        return None


# ── motion ──────────────────────────────────────────────────────────────────────────────────────


def _chords(path: Path, start: Floats, mover: Mover) -> Iterator[str]:
    here = mover.axes(start)
    for piece in range(len(path)):
        count = _count(path, piece)
        step = path.length[piece] / count
        for n in range(1, count + 1):
            there = mover.axes(path.end[piece] if n == count else path.position(piece, n * step))
            way, here = math.dist(there, here), there
            if way == 0.0:
                continue
            if path.rapid[piece]:
                yield f"G53G0{_words(there)}"
            else:
                feed = way * path.feed[piece] / step * MINUTE
                yield f"G53G1{_words(there)}F{_decimal(feed)}"


def _count(path: Path, piece: int) -> int:
    """The number of chords of a piece: the sagitta of an arc of length h is |q''|·h²/8."""
    rows, length = path.shape[piece], float(path.length[piece])
    if len(rows) < 4:
        return 1
    bends = (2.0 * rows[2], 2.0 * rows[2] + 6.0 * rows[3] * length)
    bend = max(float(np.abs(each).max()) for each in bends)
    return max(1, math.ceil(length * math.sqrt(bend / (8.0 * CHORD))))


def _words(axes: Axes) -> str:
    return "".join(
        f"{letter}{_decimal(value)}" for letter, value in zip(AXIS_LETTERS, axes, strict=True)
    )


def _decimal(value: float) -> str:
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


# ── everything else ─────────────────────────────────────────────────────────────────────────────


def _wait(request: requests.WaitInput) -> Iterator[str]:
    letter = "P" if request.kind == "digital" else "E"
    mode = WAIT_MODES.index(request.mode)
    yield f"M66{letter}{request.pin}L{mode}Q{_decimal(request.timeout)}"


def _spin(request: requests.Spindle) -> Iterator[str]:
    yield request.direction + (f"S{_decimal(request.speed)}" if request.direction != "M5" else "")


def _cool(request: requests.Coolant) -> Iterator[str]:
    if request.mist:
        yield "M7"
    if request.flood:
        yield "M8"
    if not (request.mist or request.flood):
        yield "M9"


def _output(request: requests.SetOutput) -> Iterator[str]:
    number = 62 + 2 * (not request.with_motion) + (not request.on)
    yield f"M{number}P{request.pin}"


def _analog(request: requests.SetAnalog) -> Iterator[str]:
    yield f"M{67 if request.with_motion else 68}E{request.pin}Q{_decimal(request.value)}"


def _tool(request: requests.ToolChange) -> Iterator[str]:
    yield f"M6T{request.tool}" if request.physical else f"M61Q{request.tool}"


def _overrides(request: requests.Overrides) -> Iterator[str]:
    yield f"M50P{int(request.feed)}"
    yield f"M51P{int(request.speed)}"
    yield f"M53P{int(request.hold)}"


PLAIN: dict[type[Any], Callable[[Any], Iterator[str]]] = {
    requests.Dwell: lambda request: iter([f"G4P{_decimal(request.seconds)}"]),
    requests.SetOutput: _output,
    requests.SetAnalog: _analog,
    requests.WaitInput: _wait,
    requests.Spindle: _spin,
    requests.Coolant: _cool,
    requests.ToolChange: _tool,
    requests.Overrides: _overrides,
    requests.Message: lambda request: iter([f"(MSG,{_NOT_SENDABLE.sub(' ', request.text)})"]),
    requests.ProgramPause: lambda request: iter([request.name]),
    requests.ProgramEnd: lambda request: iter([request.name]),
}
"""Requests that are sent to the controller as lines; the others change only the state here."""


# ── the driver ────────────────────────────────────────────────────────────────────────────────────


def real_client(config: CellConfig, name: str, robot: ArmController) -> RealClient:
    """The driver, with the model, dialect and pin names of the simulated arm."""
    arm, io = robot.arm, robot.io
    settings = GrblHalConfig(
        dialect=config.robots[name].config.dialect,
        digital_output_names={io.do.name(pin): pin for pin in range(io.do.count)},
        analog_output_names={io.ao.name(pin): pin for pin in range(io.ao.count)},
    )
    lines, driver = _lines_and_driver(config, name, settings)
    names = {"DI": io.di, "DO": io.do, "AI": io.ai, "AO": io.ao}
    dialect = arm.options.dialect if settings.dialect == "arm" else arm.options.wire
    actions = ArmActions(driver, arm, dialect=dialect)
    return RealClient(
        driver,
        actions,
        program=ProgramRun(driver, GcodeLanguage(dialect)),
        connect=driver.connect,
        disconnect=driver.disconnect,
        job_arm=real_job_arm(robot, driver, actions, lambda now: lines.tool),
        pins=PolledPins(driver, names),
    )


def driver_of(config: CellConfig, robot: str, settings: GrblHalConfig) -> GrblHalDriver:
    """A driver with the joints of an arm of the cell; of the first arm if none is named."""
    return _lines_and_driver(config, robot, settings)[1]


def _lines_and_driver(
    config: CellConfig, robot: str, settings: GrblHalConfig
) -> tuple[JointLines, GrblHalDriver]:
    setup = motion_setup(config, robot, settings.dialect)
    lines, chain = JointLines(setup), getattr(setup.mover, "chain", None)
    limits = (tuple(chain.lower.tolist()), tuple(chain.upper.tolist())) if chain else None
    writer = lines if settings.dialect == "arm" else None
    units = setup.dialect.units
    driver = build(settings, writer=writer, tool_pose=lines.tip, limits=limits, units=units)
    return lines, driver
