"""A page of another package is a tab, and shows what a query of its own package answers."""

from collections.abc import Callable, Iterator

import pytest
from examples.add_a_job import install
from tests.browsers import TIMEOUT_SECONDS, RunningCell, Screen, started


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCell]:
    folder = tmp_path_factory.mktemp("package")
    install(folder)
    running = started("cell.yaml", folder, "--rate=10", run_in=folder)
    yield running
    running.process.terminate()
    running.process.wait(TIMEOUT_SECONDS)


def test_it_asks_its_own_query(cell: RunningCell, open_page: Callable[..., Screen]) -> None:
    screen = open_page(cell)
    screen.open_tab("inspection")
    screen.reads("visited", "0 points")
    cell.ask("enable", robot="g60")
    assert cell.ask("start_inspection")["running"]
    screen.reads("visited", "2 points")
    assert cell.ask("inspection")["visited"] == 2
    assert not screen.errors


def test_it_has_an_address_of_its_own(cell: RunningCell, open_page: Callable[..., Screen]) -> None:
    screen = open_page(cell, "/inspection")
    screen.reads("visited", "2 points")
