"""Protocols between the parts of a Modbus gripper: driver, virtual device, fingers and face."""

from collections.abc import Collection, Sequence
from typing import Annotated, Literal, NamedTuple, Protocol, runtime_checkable

from msgspec import Meta

Word = Annotated[int, Meta(ge=0, le=0xFFFF)]
"""A register."""
Opening = Annotated[float, Meta(ge=0.0, le=1.0)]
"""Distance between two fingers, m."""
Piece = Annotated[bytes, Meta(max_length=1024)]
"""Bytes of a connection in a snapshot."""


class Registers(Protocol):
    """A device with registers of 16 bits."""

    unit: int

    @property
    def functions(self) -> Collection[int]:
        """The functions of Modbus that it knows."""
        ...

    def read(self, address: int, count: int, now: int) -> Sequence[int] | int:
        """The registers, or the number of an exception."""
        ...

    def write(self, address: int, values: Sequence[int], now: int) -> int:
        """Writes all of the registers or none; the number of an exception, 0 if there is none."""
        ...


class Limits(NamedTuple):
    """What a gripper can do: m, N, m/s."""

    stroke: float
    force: tuple[float, float]
    speed: tuple[float, float]


class Block(NamedTuple):
    """Registers that are read with one request."""

    function: int
    address: int
    size: int


class Write(NamedTuple):
    """Registers that are written with one request. `optional`: some models lack them, so that a
    refusal is ignored."""

    address: Word
    values: tuple[Word, ...]
    optional: bool = False


Phase = Literal["off", "starting", "ready", "unknown"]


class ServoReading(NamedTuple):
    """What the status registers of a gripper say.

    `phase`: whether it is activated; in a status that the make does not have it is "unknown", with
    a `fault`, and the gripper gets no command. `part`: the fingers were stopped by something.
    `opening`: between the fingers, m. `fault`: in words. `target`: the register value of the
    position that it goes to, where the device shows that.
    """

    phase: Phase
    moving: bool
    part: bool
    opening: float
    fault: str = ""
    target: int | None = None


def unknown_reading(opening: float, *words: int) -> ServoReading:
    """A status that the make does not have."""
    shown = " ".join(f"{word:04X}h" for word in words)
    return ServoReading("unknown", False, False, opening, f"its status is not known: {shown}")


class Profile(Protocol):
    """How a driver talks to one make of gripper. All methods are pure."""

    unit: int
    limits: Limits
    status: Block
    single_writes: bool
    """Single registers are written with function 6."""

    def activation(self) -> Sequence[Write]: ...

    def move(self, opening: float, force: float, speed: float) -> Sequence[Write]:
        """What makes the fingers go to an opening; m, N, m/s."""
        ...

    def target(self, opening: float) -> int | None:
        """The value that `ServoReading.target` has while this opening is the target."""
        ...

    def reading(self, values: Sequence[int]) -> ServoReading: ...


@runtime_checkable
class OffersRegisters(Protocol):
    """A gripper with a virtual Modbus device."""

    def registers(self) -> Registers | None:
        """None: it has no such device."""
        ...


class Jaws(Protocol):
    """What the fingers meet."""

    def width(self, opening: float, now: int) -> float | None:
        """Width of the part between fingers with this opening, m; None if there is none."""
        ...

    def take(self, opening: float, force: float, now: int) -> bool:
        """The fingers press on the part; whether they hold it."""
        ...

    def let_go(self, now: int) -> None: ...

    def holds(self) -> bool: ...


def share(value: float, limits: tuple[float, float]) -> float:
    """Where a value is between its limits, 0 … 1."""
    low, high = limits
    return min(max((value - low) / (high - low), 0.0), 1.0)


def between(share: float, limits: tuple[float, float]) -> float:
    """The value at a share of the way between its limits."""
    return limits[0] + share * (limits[1] - limits[0])
