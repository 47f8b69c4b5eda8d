"""A device without pins, for tests: a lamp that burns out."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from understudy.errors import Refused
from understudy.ports.device import Mount
from understudy.ports.faults import Fault, Faults

FAULTS: Faults = {"lamp_broken": Fault("brought", "the lamp is dark until reset")}


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    watts: float = 5.0


class Lamp:
    """`Device` that does nothing at times of its own."""

    def __init__(self, config: Config) -> None:
        self.watts = config.watts
        self.broken = False

    def next_wake(self) -> int | None:
        return None

    def wake(self, now: int) -> None:
        return None

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> dict[str, Any]:
        return {"broken": self.broken}

    def save(self) -> bool:
        return self.broken

    def load(self, state: Any) -> None:
        self.broken = bool(state)

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        self.broken = True
        return None

    def reset(self, now: int) -> None:
        self.broken = False

    def active_faults(self) -> tuple[str, ...]:
        return ("the lamp is broken",) if self.broken else ()


def build(name: str, config: Config, mount: Mount) -> Lamp:
    return Lamp(config)
