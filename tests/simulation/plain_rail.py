"""A robot from outside that offers nothing but its emergency stop."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import Deps
from understudy.ports.faults import EMERGENCY_STOP, Faults


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """No keys."""


class PlainRail:
    def __init__(self) -> None:
        self._state = "ready"

    def status(self, now: int) -> str:
        return self._state

    def save(self) -> str:
        return self._state

    def load(self, state: Any) -> None:
        self._state = state

    def faults(self) -> Faults:
        return EMERGENCY_STOP

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        self._state = "stopped" if fault == "emergency_stop" else "ready"
        return None


def build(name: str, config: Config, deps: Deps) -> PlainRail:
    return PlainRail()
