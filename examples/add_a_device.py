"""Add a device from outside the package: a stack light with one red lamp, in this one file.

`registry.register` adds it to the table of devices of this process; an installed package does so by
an entry point of the group `understudy.devices`.
"""

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from understudy import registry
from understudy.app import validate
from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.ports.device import Mount, PlotRow
from understudy.ports.faults import Fault, Faults
from understudy.ports.hmi import PanelRow
from understudy.ports.io import PinChange

FAULTS: Faults = {"lamp_failure": Fault("brought", "the lamp is dark until it is reset")}
DARK = "the red lamp is switched on, but it is dark"


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    red_pin: int = 16


class State(Struct):
    on: bool = False
    failed: bool = False


class StackLight:
    """A `Device` that also offers `HasPanel`, `Plotted` and `HasFindings`."""

    def __init__(self, name: str, config: Config, mount: Mount) -> None:
        self._pin, self._state = config.red_pin, State()
        self._findings: list[tuple[int, str]] = []
        mount.needed_pins().on_change(self._pin_changed)

    def _pin_changed(self, change: PinChange) -> None:
        if (change.bank, change.pin) == ("DO", self._pin):
            self._state.on = change.value
            if change.value and self._state.failed:
                self._findings.append((change.at, DARK))

    def next_wake(self) -> int | None:
        return None

    def wake(self, now: int) -> None: ...

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> bool:
        return self._state.on and not self._state.failed

    def save(self) -> State:
        return self._state

    def load(self, state: Any) -> None:
        self._state = msgspec.convert(state, State)

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> None:
        self._state.failed = True

    def active_faults(self) -> Sequence[str]:
        return ["lamp failure"] if self._state.failed else []

    def reset(self, now: int) -> None:
        self._state.failed = False

    def panel(self, now: int) -> Sequence[PanelRow]:
        return [PanelRow("Red lamp", self.status(now), state="fault" if self._state.failed else "")]

    def plots(self) -> Sequence[PlotRow]:
        return [PlotRow("red_lamp", "", self.status)]

    def findings(self) -> Sequence[tuple[int, str]]:
        return self._findings


build = StackLight


async def use(cell: Path, rules: Path) -> None:
    live = Live(load_config(str(cell)), Options(rate="step", ephemeral=True))
    ask: Any = lambda name, **given: live.commands.call(name, given, "operator")  # noqa: E731
    ask("set_output", robot="g60", pin=16, value=True)
    assert [row.value for row in ask("devices")[0]["panel"]] == [True], "page panel"
    assert ask("sample", robot="g60")["rows"][-1]["red_lamp"] == 1, "plots"
    moment = ask("snapshot")["snapshot"]
    assert ask("faults")["lamp_failure"]["places"] == ["g60.stack_light"], "faults"
    ask("advance", seconds=1.0)
    assert ask("devices")[0]["faults"] == ["lamp failure"], "scenario"
    ask("restore", snapshot=moment)
    assert ask("devices")[0]["faults"] == [], "snapshot"
    await live.stop()
    report = validate.validate("G4 P2\nM64 P16\n", cell, validate.Options(scenario=str(rules)))
    assert [each.message for each in report.violations] == [f"line 2: {DARK}"], "offline check"
    print(report.violations[0].message)


if __name__ == "__main__":
    registry.register("devices", "stack_light", __name__)
    with tempfile.TemporaryDirectory() as folder:
        cell, rules = Path(folder, "cell.yaml"), Path(folder, "rules.yaml")
        rules.write_text("rules: {dark: {fault: lamp_failure, on: g60.stack_light, at_s: 1}}\n")
        robots = "robots: {g60: {kind: arm, stack_light: {red_pin: 16}}}"
        cell.write_text(f"{robots}\ninclude: {{scenario: rules.yaml}}\n")
        asyncio.run(use(cell, rules))
