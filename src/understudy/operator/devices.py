"""Panels of the devices of a cell, as pages draw them."""

from collections.abc import Callable, Mapping
from typing import Any

from understudy.config import CellConfig
from understudy.operator.table import Command
from understudy.ports import Part
from understudy.ports.hmi import HasPanel


class DeviceQuery:
    """The query `devices`: every part of the cell that has a panel."""

    def __init__(
        self, config: CellConfig, parts: Mapping[str, Part], now: Callable[[], int]
    ) -> None:
        self._now = now
        self._kinds = {name: device.kind for name, device in config.devices.items()}
        self._devices = {name: part for name, part in parts.items() if isinstance(part, HasPanel)}

    def commands(self) -> list[Command]:
        doc = "all devices: panel rows (label, value, unit, state) and active faults"
        return [Command("devices", doc, lambda _: self._list(), role="viewer")]

    def _list(self) -> list[dict[str, Any]]:
        now = self._now()
        return [
            {
                "name": name,
                "kind": self._kinds.get(name) or name.rpartition(".")[2],
                "panel": device.panel(now),
                "faults": device.active_faults(),
            }
            for name, device in self._devices.items()
        ]
