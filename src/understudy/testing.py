"""pytest plugin: a robot as a fixture, on a free port and on virtual time.

    def test_my_client(text_robot):
        client = MyClient(text_robot.host, text_robot.port)
        client.move(100, 200, 150)          # the answer comes at once: time runs while it is owed
        text_robot.forward(seconds=3)
        text_robot.inject("emergency_stop")

`@pytest.mark.understudy(cell="my_cell.yaml", seed=7, rules=True)` chooses another cell, another
seed, or the cell's scenario rules, which are off otherwise.
"""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from understudy.app.stand_in import StandIn

if TYPE_CHECKING:
    from understudy.agenda import Rate
    from understudy.robots.arm.virtual_controller import VirtualController
    from understudy.robots.mobile.stand_in import FleetStandIn, MobileRobot


FLEET_RATE = 10.0
"""Times real time of `fleet`: a backend has clocks of its own."""
KEYWORDS = ("cell", "seed", "rules", "rate", "hmi", "files")
"""Keywords of the marker `understudy`."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"understudy({', '.join(KEYWORDS)}): which cell the fixtures run, and how",
    )


def _stand_in(request: pytest.FixtureRequest, cell: str, rate: "Rate" = "step") -> StandIn:
    marker = request.node.get_closest_marker("understudy")
    if marker is None:
        return StandIn(cell, rate=rate)
    wrong = [*map(repr, marker.args), *(name for name in marker.kwargs if name not in KEYWORDS)]
    if wrong:
        raise pytest.UsageError(
            f"@pytest.mark.understudy: {', '.join(wrong)} is not understood; "
            f"allowed are the keywords {', '.join(KEYWORDS)}"
        )
    return StandIn(**({"cell": cell, "rate": rate} | marker.kwargs))


@pytest.fixture(scope="session")
def compiled_kernels(request: pytest.FixtureRequest) -> None:
    """Fills the kernel cache if it is empty, with progress on the terminal (see docs/pytest.md)."""
    from understudy.app.kernels import ProgressLine, fill_cache, is_warm

    if is_warm():
        return
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        print("\nunderstudy: the kernel cache is empty; it is filled once", file=sys.stderr)
        fill_cache(line := ProgressLine())
        line.clear()


@pytest.fixture
def cell(request: pytest.FixtureRequest, compiled_kernels: None) -> Iterator[StandIn]:
    """The default cell, or the one the marker names."""
    with _stand_in(request, "default") as stand_in:
        yield stand_in


@pytest.fixture
def text_robot(request: pytest.FixtureRequest) -> Iterator[StandIn]:
    """The text TCP robot."""
    with _stand_in(request, "text_robot") as stand_in:
        yield stand_in


@pytest.fixture
def kuka_robot(request: pytest.FixtureRequest, compiled_kernels: None) -> Iterator[StandIn]:
    """The KUKA with its G-code server; `kuka_robot.address("kuka.kuka_eki.command")`."""
    with _stand_in(request, "kuka_eki") as stand_in:
        yield stand_in


@pytest.fixture
def grbl_robot(request: pytest.FixtureRequest, compiled_kernels: None) -> Iterator[StandIn]:
    """A machine with six axes behind grblHAL; `cell="default"` has an arm at `g60.grblhal`."""
    with _stand_in(request, "grblhal_6axis") as stand_in:
        yield stand_in


@pytest.fixture
def robot(compiled_kernels: None) -> "VirtualController":
    """A G60 in this process, connected and enabled, with a clock of its own and no socket."""
    from understudy.robots.arm.virtual_controller import VirtualController

    arm = VirtualController("g60")
    arm.connect()
    arm.enable()
    return arm


@pytest.fixture
def fleet(request: pytest.FixtureRequest, compiled_kernels: None) -> "Iterator[FleetStandIn]":
    """Ten mobile robots and their NATS server; time runs, ten times as fast as real time."""
    from understudy.robots.mobile.stand_in import FleetStandIn

    with _stand_in(request, "fleet", FLEET_RATE) as cell, FleetStandIn(cell) as fleet:
        yield fleet


@pytest.fixture
def mobile_robot(request: pytest.FixtureRequest, compiled_kernels: None) -> "Iterator[MobileRobot]":
    """A mobile robot on virtual time, with its NATS server; the first one of the marker's cell."""
    from understudy.robots.mobile.stand_in import FleetStandIn

    with _stand_in(request, "mobile_robot") as cell, FleetStandIn(cell) as fleet:
        yield fleet.robot(fleet.robots[0])
