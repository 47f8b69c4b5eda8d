"""Tables of kinds: shipped rows, entry points of installed packages, rows of this process."""

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from understudy import registry
from understudy.errors import ConfigError


@pytest.fixture(autouse=True)
def uncached_entry_points() -> Iterator[None]:
    registry.installed.cache_clear()
    yield
    registry.installed.cache_clear()


@pytest.mark.parametrize("table", registry.TABLES)
def test_every_shipped_kind_has_a_module(table: str) -> None:
    for module in registry.TABLES[table].values():
        assert import_module(module).__doc__


NOT_NEEDED = ("pymodbus", "can", "canopen", "ray", "aiomqtt", "cv2", "eaik")
"""`make run` installs only cv2 of them, and cells are loaded without it, too."""
WITHOUT_THEM = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))  # importing one of them is an error
from understudy import load_cell, registry
from understudy.config.files import shipped_cells
for _ in registry.modules("devices", "robots", "faces"):
    pass
for name in shipped_cells():
    load_cell(name)
"""


def test_shipped_cells_are_loaded_without_packages_for_single_purposes() -> None:
    """Every cell with a scenario rule reads all devices, robots and faces for their faults."""
    command = [sys.executable, "-c", WITHOUT_THEM, *NOT_NEEDED]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("table", registry.TABLES)
def test_an_entry_point_adds_a_kind(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an installed package has it: a module, and a dist-info folder that names it."""
    names = (name.partition("|")[0] for name in registry.REQUIRED.get(table, ()))
    declared = "".join(f"{name} = None\n" for name in names)
    (tmp_path / f"outside_{table}.py").write_text(f"TABLE = {table!r}\n{declared}")
    info = tmp_path / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[understudy.{table}]\nown = outside_{table}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert registry.kinds(table) == registry.TABLES[table] | {"own": f"outside_{table}"}
    assert table == registry.module_of(table, "own").TABLE
    del sys.modules[f"outside_{table}"]


def test_a_row_of_this_process() -> None:
    registry.register("devices", "own", "understudy.devices.welder")
    assert registry.module_of("devices", "own") is registry.module_of("devices", "welder")
    assert "own" not in registry.TABLES["devices"]


def test_an_unknown_kind_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"unknown kind of robot.*kuka"):
        registry.module_of("robots", "kuca")


def test_a_module_from_outside_that_cannot_be_imported_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken_robot.py").write_text("import no_such_library\n")
    (tmp_path / "empty_robot.py").write_text('"""Declares nothing."""\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(registry._registered["robots"], "broken", "broken_robot")
    monkeypatch.setitem(registry._registered["robots"], "empty", "empty_robot")
    with pytest.raises(ConfigError, match="robot broken cannot be imported: ModuleNotFoundError"):
        registry.module_of("robots", "broken")
    with pytest.raises(ConfigError, match="robot empty has no Config"):
        registry.module_of("robots", "empty")
    usable = [kind for _, kind, _ in registry.modules("robots")]
    assert usable == list(registry.TABLES["robots"]), "the other kinds still work"
    assert "cannot be imported" in caplog.text


def test_a_shipped_kind_cannot_be_replaced() -> None:
    registry.register("robots", "arm", "json")
    assert registry.kinds("robots") == registry.TABLES["robots"]
