"""A capability is one folder and one row: without them everything else goes on.

`make test` removes a small one, `make soak` each of them in turn.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import deletion

from understudy import registry

SMALL = "devices/tool_changer"
ROOMS = ("robots/text_robot", "robots/kuka", "gcode")
"""Rooms whose tests run in the copy: the first two that are there."""


def failures(
    folder: Path, capability: str, rooms: int, *more: Callable[[deletion.Tree], str]
) -> list[str]:
    """What does not work without a capability. `more`: what is tried besides."""
    tree = deletion.Tree(folder, capability)
    others = [room for room in ROOMS if room not in tree.removed][:rooms]
    tried = (
        deletion.imports,
        deletion.names,
        deletion.contracts,
        deletion.helps,
        deletion.cells,
        *more,
        deletion.tests_of(*others),
    )
    found = [f"{each.__name__}: {said}" for each in tried if (said := each(tree))]
    shutil.rmtree(tree.root)
    return found


def test_without_a_small_capability_the_others_go_on(tmp_path: Path) -> None:
    assert failures(tmp_path, SMALL, 1) == []


@pytest.mark.soak
@pytest.mark.parametrize("capability", deletion.capabilities())
def test_without_a_capability_the_others_go_on(tmp_path: Path, capability: str) -> None:
    found = failures(tmp_path, capability, 2, deletion.types)
    assert not found, "\n".join(found)


def test_every_row_of_the_registry_can_be_removed(tmp_path: Path) -> None:
    source = deletion.ROOT / "src/understudy/registry.py"
    for row in registry.CAPABILITIES:
        copy = tmp_path / "registry.py"
        shutil.copy(source, copy)
        deletion.remove_row(copy, row.package.removeprefix("understudy.").replace(".", "/"))
        text = copy.read_text()
        assert f'"{row.package}"' not in text
        compile(text, "registry.py", "exec")
