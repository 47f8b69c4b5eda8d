"""Commands for pins: levels, forced inputs, outputs, links; and for the trails of devices."""

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.operator.robots import OfRobot, Robot, Robots
from understudy.operator.table import Command
from understudy.ports.device import LeavesTrail
from understudy.simulation.io.virtual_io import LONGEST_DELAY_MS, PinNames, VirtualIO
from understudy.units import NS_PER_MS

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

Pin = Annotated[int, Meta(ge=0, le=1000)] | Annotated[str, Meta(max_length=64)]
Volts = Annotated[float, Meta(ge=-1000, le=1000)]
Milliseconds = Annotated[float, Meta(ge=0, le=LONGEST_DELAY_MS)]
SIMULATED_ONLY = "inputs of a REAL controller are what its wires say"


def commands(cell: "OperatedCell") -> list[Command]:
    return PinCommands(cell.robots).commands()


class Level(Struct, frozen=True, forbid_unknown_fields=True):
    """`pin`: its number, its name, or both (`DI3`)."""

    robot: str
    pin: Pin
    value: bool


class ThePin(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    pin: Pin


class Analog(Struct, frozen=True, forbid_unknown_fields=True):
    """A voltage of an analog output."""

    robot: str
    pin: Pin
    value: Volts


class AnalogInput(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    pin: Pin
    value: Volts | None
    ramp_s: Annotated[float, Meta(ge=0, le=3600)] = 0.0


class Trigger(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    pin: Pin
    ms: Milliseconds = 100.0
    value: bool = True


class LinkPins(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    output: Pin
    input: Pin
    delay_ms: Milliseconds = 0.0
    invert: bool = False


class Unlink(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    output: Pin


class PinCommands:
    """The commands for pins; each returns all pins of the robot."""

    def __init__(self, robots: Robots) -> None:
        self._robots = robots

    def commands(self) -> list[Command]:
        add = Command
        return [
            add("io", "every pin: value, forced, owner; links", self._io, OfRobot, role="viewer"),
            add("set_input", "force a digital input", self._set_input, Level),
            add("release_input", "let a forced input go", self._release, ThePin),
            add("set_output", "switch a digital output", self._set_output, Level),
            add("set_analog_input", "force an analog input, or let go", self._force, AnalogInput),
            add("set_analog_output", "set an analog output", self._set_analog, Analog),
            add("trigger", "a pulse on an input, as of a sensor", self._trigger, Trigger),
            add("link", "an output moves an input from now on", self._link, LinkPins),
            add("unlink", "an output moves no input any more", self._unlink, Unlink),
            add("clear_trail", "clear the trails of a robot's devices", self._clear_trail, OfRobot),
        ]  # fmt: skip

    # ── looking ──

    def _io(self, given: OfRobot) -> Any:
        robot = self._robots.find(given.robot)
        io = robot if isinstance(robot, Refused) else _board(robot)
        if isinstance(robot, Refused) or isinstance(io, Refused):
            return io
        return robot.simulated.time.act(lambda now: pinboard(robot, io, now))

    # ── switching ──

    def _set_input(self, given: Level) -> Any:
        return self._on_board(
            given.robot, lambda io, now: io.set_digital_input(given.pin, given.value, now)
        )

    def _release(self, given: ThePin) -> Any:
        return self._on_board(given.robot, lambda io, now: io.release_digital_input(given.pin, now))

    def _force(self, given: AnalogInput) -> Any:
        def force(io: VirtualIO, now: int) -> Refused | None:
            if given.value is None:
                return io.release_analog_input(given.pin, now)
            return io.simulate_analog_sensor(given.pin, given.value, now, given.ramp_s)

        return self._on_board(given.robot, force)

    def _trigger(self, given: Trigger) -> Any:
        return self._on_board(
            given.robot,
            lambda io, now: io.simulate_sensor_trigger(given.pin, given.value, now, given.ms),
        )

    def _link(self, given: LinkPins) -> Any:
        return self._on_board(
            given.robot,
            lambda io, now: io.link(
                given.output, given.input, given.delay_ms, now, invert=given.invert
            ),
        )

    def _unlink(self, given: Unlink) -> Any:
        return self._on_board(given.robot, lambda io, now: io.unlink(given.output, now))

    def _set_output(self, given: Level) -> Any:
        return self._switch(given.robot, "set_digital_output", given.pin, given.value)

    def _set_analog(self, given: Analog) -> Any:
        return self._switch(given.robot, "set_analog_output", given.pin, given.value)

    def _clear_trail(self, given: OfRobot) -> Any:
        robot = self._robots.find(given.robot)
        if isinstance(robot, Refused):
            return robot
        drawing = [each for each in robot.devices.values() if isinstance(each, LeavesTrail)]
        if not drawing:
            return Refused(f"{given.robot} has no device that leaves a trail")
        for device in drawing:
            robot.simulated.time.act(device.clear_trail)
        return robot.summary()

    # ── inside ──

    def _on_board(self, name: str, deed: Any) -> Any:
        """Changes the pins of a simulated robot; a REAL one is refused."""
        robot = self._robots.find(name)
        if isinstance(robot, Refused):
            return robot
        if robot.real is not None:
            return Refused(f"{name} is REAL: {SIMULATED_ONLY}")
        io = _board(robot)
        if isinstance(io, Refused):
            return io
        refused = robot.simulated.time.act(lambda now: deed(io, now))
        return refused or self._io(OfRobot(name))

    def _switch(self, name: str, verb: str, pin: int | str, value: float) -> Any:
        """Sets an output through the controller, simulated or REAL, else directly on the pins."""
        robot = self._robots.find(name)
        io = robot if isinstance(robot, Refused) else _board(robot)
        if isinstance(robot, Refused) or isinstance(io, Refused):
            return io
        switch = getattr(robot.side.controller, verb, None) or getattr(io, verb)
        refused = robot.side.time.act(lambda now: switch(pin, value, now))
        return refused if isinstance(refused, Refused) else self._io(OfRobot(name))


def _board(robot: Robot) -> VirtualIO | Refused:
    io = getattr(robot.simulated.controller, "io", None)
    return io if isinstance(io, VirtualIO) else Refused(f"{robot.name} ({robot.kind}) has no pins")


def pinboard(robot: Robot, io: VirtualIO, now: int) -> dict[str, Any]:
    """All pins: names from the cell file; levels from the REAL controller if there is one."""
    board = io.status(now)
    digital, analog = board.digital, board.analog
    forced = {"DI": board.forced, "AI": board.analog_forced}
    if robot.real is not None:
        controller = robot.real.controller
        digital, analog, forced = controller.digital_io(), controller.analog_io(now), {}
    return {
        "digital_inputs": _digital(io.di, digital.inputs, forced.get("DI", ()), io.owner),
        "digital_outputs": _digital(io.do, digital.outputs, (), lambda pin: "controller"),
        "analog_inputs": _analog(io.ai, analog.inputs, forced.get("AI", ())),
        "analog_outputs": _analog(io.ao, analog.outputs, ()),
        "links": [
            {
                "output": io.do.name(wire.pin),
                "input": io.di.name(wire.to),
                "delay_ms": wire.delay / NS_PER_MS,
                "invert": wire.invert,
            }
            for wire in io.links()
        ],
    }


def _digital(names: PinNames, word: int, forced: Any, owner: Any) -> list[dict[str, Any]]:
    return [
        {
            "number": pin,
            "name": names.name(pin),
            "value": bool(word >> pin & 1),
            "forced": pin in forced,
            "owner": owner(pin),
        }
        for pin in range(names.count)
    ]


def _analog(names: PinNames, values: tuple[float, ...], forced: Any) -> list[dict[str, Any]]:
    return [
        {"number": pin, "name": names.name(pin), "value": value, "forced": pin in forced}
        for pin, value in enumerate(values)
    ]
