"""Commands for pins: levels, forced inputs, outputs, links; and for the trails of devices."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from understudy.errors import Refused
from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command, command, commands_of, query
from understudy.ports.device import LeavesTrail
from understudy.simulation.io.virtual_io import LONGEST_DELAY_MS, PinNames, VirtualIO
from understudy.units import NS_PER_MS

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

Pin = Annotated[int, Meta(ge=0, le=1000)] | Annotated[str, Meta(max_length=64)]
Volts = Annotated[float, Meta(ge=-1000, le=1000)]
Ramp = Annotated[float, Meta(ge=0, le=3600)]
Milliseconds = Annotated[float, Meta(ge=0, le=LONGEST_DELAY_MS)]
Change = Callable[[VirtualIO, int], Refused | None]
SIMULATED_ONLY = "inputs of a REAL controller are what its wires say"


def commands(cell: "OperatedCell") -> list[Command]:
    return commands_of(PinCommands(cell.robots))


class PinCommands:
    """The commands for pins; each returns all pins of the robot."""

    def __init__(self, robots: Robots) -> None:
        self._robots = robots

    @query()
    def io(self, robot: str) -> Any:
        """Every pin: value, forced, owner; links."""
        found = self._robots.find(robot)
        io = found if isinstance(found, Refused) else _board(found)
        if isinstance(found, Refused) or isinstance(io, Refused):
            return io
        return found.simulated.time.act(lambda now: pinboard(found, io, now))

    @command()
    def set_input(self, robot: str, pin: Pin, value: bool) -> Any:
        """Force a digital input.

        `pin`: its number, its name, or both (`DI3`).
        """
        return self._on_board(robot, lambda io, now: io.set_digital_input(pin, value, now))

    @command()
    def release_input(self, robot: str, pin: Pin) -> Any:
        """Let a forced input go."""
        return self._on_board(robot, lambda io, now: io.release_digital_input(pin, now))

    @command()
    def set_output(self, robot: str, pin: Pin, value: bool) -> Any:
        """Switch a digital output.

        `pin`: its number, its name, or both (`DI3`).
        """
        return self._switch(robot, "set_digital_output", pin, value)

    @command()
    def set_analog_input(
        self, robot: str, pin: Pin, value: Volts | None, ramp_s: Ramp = 0.0
    ) -> Any:
        """Force an analog input, or let go."""

        def force(io: VirtualIO, now: int) -> Refused | None:
            if value is None:
                return io.release_analog_input(pin, now)
            return io.simulate_analog_sensor(pin, value, now, ramp_s)

        return self._on_board(robot, force)

    @command()
    def set_analog_output(self, robot: str, pin: Pin, value: Volts) -> Any:
        """Set an analog output.

        A voltage of an analog output.
        """
        return self._switch(robot, "set_analog_output", pin, value)

    @command()
    def trigger(self, robot: str, pin: Pin, ms: Milliseconds = 100.0, value: bool = True) -> Any:
        """A pulse on an input, as of a sensor."""
        return self._on_board(
            robot, lambda io, now: io.simulate_sensor_trigger(pin, value, now, ms)
        )

    @command()
    def link(
        self,
        robot: str,
        output: Pin,
        input: Pin,
        delay_ms: Milliseconds = 0.0,
        invert: bool = False,
    ) -> Any:
        """An output moves an input from now on."""
        return self._on_board(
            robot, lambda io, now: io.link(output, input, delay_ms, now, invert=invert)
        )

    @command()
    def unlink(self, robot: str, output: Pin) -> Any:
        """An output moves no input any more."""
        return self._on_board(robot, lambda io, now: io.unlink(output, now))

    @command()
    def clear_trail(self, robot: str) -> Any:
        """Clear the trails of a robot's devices."""
        found = self._robots.find(robot)
        if isinstance(found, Refused):
            return found
        drawing = [each for each in found.devices.values() if isinstance(each, LeavesTrail)]
        if not drawing:
            return Refused(f"{robot} has no device that leaves a trail")
        for device in drawing:
            found.simulated.time.act(device.clear_trail)
        return found.summary()

    # ── inside ──

    def _on_board(self, name: str, change: Change) -> Any:
        """Changes the pins of a simulated robot; a REAL one is refused."""
        robot = self._robots.find(name)
        if isinstance(robot, Refused):
            return robot
        if robot.real is not None:
            return Refused(f"{name} is REAL: {SIMULATED_ONLY}")
        io = _board(robot)
        if isinstance(io, Refused):
            return io
        refused = robot.simulated.time.act(lambda now: change(io, now))
        return refused or self.io(name)

    def _switch(self, name: str, verb: str, pin: int | str, value: float) -> Any:
        """Sets an output through the controller, simulated or REAL, else directly on the pins."""
        robot = self._robots.find(name)
        io = robot if isinstance(robot, Refused) else _board(robot)
        if isinstance(robot, Refused) or isinstance(io, Refused):
            return io
        switch = getattr(robot.side.controller, verb, None) or getattr(io, verb)
        refused = robot.side.time.act(lambda now: switch(pin, value, now))
        return refused if isinstance(refused, Refused) else self.io(name)


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
