"""The welder and the pins on the Device Protocol; devices in a cell file; the engine's reset."""

from pathlib import Path

import pytest
from tests.devices.lamp import Lamp
from tests.devices.welder.weld_bench import WeldingCell
from tests.parts import part

from understudy import registry
from understudy.app.build import load_cell
from understudy.app.stand_in import StandIn
from understudy.devices.welder.welder import Welder
from understudy.errors import ConfigError
from understudy.ports import device as ports
from understudy.ports.hmi import HasPanel
from understudy.registry import kinds, module_of
from understudy.simulation.engine import SimulationEngine
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.simulation.scenario import declared_faults

OFFERED_BY_WELDER = (
    ports.Device,
    ports.Process,
    ports.FollowsTool,
    ports.HasFindings,
    ports.LeavesTrail,
    ports.LightsTool,
    ports.Plotted,
    ports.ReportsEvents,
    HasPanel,
)


def as_devices(welder: Welder, io: VirtualIO) -> tuple[ports.Process, ports.Device]:
    """Checks the signatures with mypy."""
    return welder, io


@pytest.mark.parametrize("protocol", OFFERED_BY_WELDER)
def test_the_welder_offers(protocol: type) -> None:
    assert isinstance(WeldingCell().welder, protocol)


@pytest.mark.parametrize("kind", kinds("devices"))
def test_the_module_of_a_device_is_complete(kind: str) -> None:
    module = module_of("devices", kind)
    assert set(module.FAULTS) <= set(declared_faults())
    assert module.Config()
    assert callable(module.build)


def test_every_fault_names_what_it_acts_on() -> None:
    acts_on = {name: places for name, (_, places) in declared_faults().items()}
    assert acts_on["wire_fault"] == ["device welder"]
    assert acts_on["force_input"] == ["device io"]
    assert acts_on["message_loss"] == ["any face"]
    assert acts_on["communication_timeout"] == ["face text_tcp"]
    assert acts_on["emergency_stop"] == [f"robot {kind}" for kind in kinds("robots")]


def cell_of(text: str, folder: Path) -> str:
    file = folder / "cell.yaml"
    file.write_text(text)
    return str(file)


@pytest.fixture
def lamp_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._registered["devices"], "lamp", "tests.devices.lamp")


@pytest.mark.usefixtures("lamp_kind")
def test_a_device_is_a_part_of_the_cell(tmp_path: Path) -> None:
    text = "robots: {bench: {kind: text_robot}}\ndevices: {light: {kind: lamp, watts: 7}}\n"
    assert part(load_cell(cell_of(text, tmp_path)), "light", Lamp).watts == 7.0


@pytest.mark.usefixtures("lamp_kind")
def test_a_device_without_a_panel_is_listed_while_it_has_a_fault(tmp_path: Path) -> None:
    text = "robots: {bench: {kind: text_robot}}\ndevices: {light: {kind: lamp}}\n"
    with StandIn(cell_of(text, tmp_path)) as cell:
        assert cell.do("devices") == []
        cell.inject("lamp_broken", on="light")
        row = {
            "name": "light", "kind": "lamp", "panel": [], "faults": ("the lamp is broken",),
            "buttons": {},
        }  # fmt: skip
        assert cell.do("devices") == [row]
        cell.do("reset")
        assert cell.do("devices") == []


@pytest.mark.parametrize(
    ("devices", "reason"),
    [
        (
            "devices: {torch: {kind: welder}}",
            "devices.torch: this device needs the pins of a robot",
        ),
        ("devices: {torch: {kind: weldr}}", "did you mean 'welder'?"),
        ("devices: {bench: {kind: io}}", "another part of the cell has this name"),
        ("devices: {engine: {kind: io}}", "another part of the cell has this name"),
        ("devices: {panel: {kind: io, pins: 4}}", "unknown key (got 'pins')"),
        ("devices: {panel: {kind: io}}", "devices.panel: there is no controller with pins here"),
    ],
)
def test_invalid_devices_are_refused(devices: str, reason: str, tmp_path: Path) -> None:
    text = f"robots: {{bench: {{kind: text_robot}}}}\n{devices}\n"
    with pytest.raises(ConfigError) as caught:
        load_cell(cell_of(text, tmp_path))
    assert reason in str(caught.value)


def test_a_welder_needs_pins_and_a_tool(tmp_path: Path) -> None:
    for kind, needed in (("text_robot", "pins"), ("machine", "a tool")):
        text = f"robots: {{one: {{kind: {kind}, welder: {{}}}}}}\n"
        with pytest.raises(ConfigError, match=f"robots.one.welder: .*{needed}"):
            load_cell(cell_of(text, tmp_path))


def test_the_engine_resets_devices_that_have_a_fault() -> None:
    cell = WeldingCell()
    assert cell.inject("wire_fault") is None
    assert cell.welder.active_faults() == ("weld fault: the wire is stuck",)
    part(cell.virtual_cell, "engine", SimulationEngine).reset(cell.now)
    assert cell.welder.active_faults() == ()
    assert cell.welder.phase == "Idle"
