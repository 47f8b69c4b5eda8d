"""pytest plugin: a robot as a fixture, on a free port and on virtual time.

    def test_my_client(text_robot):
        client = MyClient(text_robot.host, text_robot.port)
        client.move(100, 200, 150)          # the answer comes at once: time runs while it is owed
        text_robot.forward(seconds=3)
        text_robot.inject("emergency_stop")

`@pytest.mark.understudy(cell="my_cell.yaml", seed=7, rules=True)` chooses another cell, another
seed, or the cell's scenario rules, which are off otherwise. A test fails if a robot has refused a
line, unless faults were injected or the marker has `refusals=True`. With `strict=True` it also
fails if a request is unknown, not emulated or only accepted formally. The report of a failed test
has the last messages of every wire and the command that replays them.
"""

import re
import shlex
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from understudy.app.stand_in import StandIn

if TYPE_CHECKING:
    from understudy.robots.arm.virtual_controller import VirtualController
    from understudy.robots.mobile.stand_in import FleetStandIn, MobileRobot


FLEET_RATE = 10.0
"""Times real time of `fleet`: a backend has clocks of its own."""
OF_CELL = ("cell", "seed", "rules")
OF_STAND_IN = (*OF_CELL, "rate", "hmi", "files", "robots", "strict")
KEYWORDS = (*OF_STAND_IN, "refusals")
"""Keywords of the marker `understudy`."""
RECORD = "--understudy-record"
LONGEST_NAME = 150
"""Characters of a test's name in the name of a folder."""
LAST_SECONDS = 0.1
"""After the end of a test an arm in this process reads and begins the line that was sent last."""
WATCHED = pytest.StashKey["list[StandIn | VirtualController]"]()
"""The robots of the fixtures that run now."""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[WATCHED] = []
    config.addinivalue_line(
        "markers",
        f"understudy({', '.join(KEYWORDS)}): which cell the fixtures run, and how",
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        RECORD,
        metavar="DIR",
        help="keep transcript, snapshot and journal of the robots of every failed test in DIR",
    )


# ── refused and unexpected requests ─────────────────────────────────────────────────────────────


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Fails a test in which a robot has refused something that the test did not expect, or has
    received something that a strict test does not allow."""
    options = _options(pyfuncitem)
    before = [_Before(each, options) for each in pyfuncitem.config.stash[WATCHED]]
    try:
        result = yield
    except Exception as problem:
        for text, _ in _problems_since(before):
            problem.add_note(text)
        raise
    if found := _problems_since(before):
        pytest.fail("\n".join(line for problem in found for line in problem), pytrace=False)
    return result


class _Before:
    """A robot, and what it had refused and received before a test."""

    def __init__(self, robot: "StandIn | VirtualController", options: dict[str, Any]) -> None:
        self.robot = robot
        self.refusals: bool = options.get("refusals", False)
        self.strict: bool | None = options.get("strict")
        if isinstance(robot, StandIn):
            self._last, self._known = robot.last_message, len(robot.alarms())
        else:
            self._last, self._known = 0, len(robot.refused)

    def refused(self) -> list[str]:
        """What was refused since then, unless faults were brought in."""
        robot = self.robot
        if self.refusals or getattr(robot, "brings_faults", False):
            return []
        if not isinstance(robot, StandIn):
            robot.advance(LAST_SECONDS)  # the line that was sent last has its turn
            return robot.refused[self._known :]
        lines = [str(each) for each in robot.findings(self._last) if not each.unexpected]
        return lines + robot.alarms()[self._known :]

    def unexpected(self) -> list[str]:
        """What a strict test does not allow."""
        robot = self.robot
        if not isinstance(robot, StandIn):
            return []
        if not (robot.strict if self.strict is None else self.strict):
            return []
        return [str(each) for each in robot.findings(self._last) if each.unexpected]


def _problems_since(before: Sequence[_Before]) -> list[tuple[str, str]]:
    """What was refused and what was not expected, each with how a test allows it."""
    found = []
    if lines := [line for each in before for line in each.refused()]:
        text = "\n  ".join(["the robot has refused:", *lines])
        found.append((text, "@pytest.mark.understudy(refusals=True) allows it"))
    if lines := [line for each in before for line in each.unexpected()]:
        text = "\n  ".join(["a strict test does not allow these requests:", *lines])
        found.append((text, "@pytest.mark.understudy(strict=False) allows them"))
    return found


# ── evidence of a failed test ───────────────────────────────────────────────────────────────────


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to the report of a failed test what passed on the wires, and how to replay it."""
    report = yield
    if report.failed and call.when == "call":
        cells = [each for each in item.config.stash[WATCHED] if isinstance(each, StandIn)]
        for number, cell in enumerate(cells):
            report.sections.append(("understudy", "\n".join(_evidence(item, cell, number))))
    return report


def _evidence(item: pytest.Item, cell: StandIn, number: int) -> list[str]:
    try:
        lines = cell.last_lines()
        folder, kept = _evidence_folder(item)
        file = folder / f"{number}-{Path(cell.cell).stem}.chat"
        whole = cell.write_transcript(file)
        if kept:
            file.with_suffix(".txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
            if not cell.ended:
                cell.write_snapshot(file.with_suffix(".json"))
    except Exception as problem:  # noqa: BLE001 - the report of the test matters more
        return [f"the wires cannot be shown: {type(problem).__name__}: {problem}"]
    part = "" if whole else "   # the begin of the run: it was too long"
    return [*lines, f"replay it: understudy replay {shlex.quote(str(file))}{part}"]


def _evidence_folder(item: pytest.Item) -> tuple[Path, bool]:
    """The folder for the files of a failed test; whether the user wants to keep them."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", item.nodeid)[-LONGEST_NAME:]
    if chosen := item.config.getoption(RECORD):
        folder = Path(chosen).absolute() / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder, True
    factory: pytest.TempPathFactory = item.config._tmp_path_factory  # type: ignore[attr-defined]
    folder = factory.getbasetemp() / "understudy" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder, False


# ── the fixtures' robots ────────────────────────────────────────────────────────────────────────


@contextmanager
def _watched(
    config: pytest.Config, each: "StandIn | VirtualController"
) -> Iterator["StandIn | VirtualController"]:
    config.stash[WATCHED].append(each)
    yield each
    config.stash[WATCHED].remove(each)


# ── the marker ──────────────────────────────────────────────────────────────────────────────────


def _options(node: pytest.Item | pytest.Collector) -> dict[str, Any]:
    """The keywords of the marker; UsageError if one is not known."""
    marker = node.get_closest_marker("understudy")
    if marker is None:
        return {}
    wrong = [*map(repr, marker.args), *(name for name in marker.kwargs if name not in KEYWORDS)]
    if wrong:
        raise pytest.UsageError(
            f"@pytest.mark.understudy: {', '.join(wrong)} is not understood; "
            f"allowed are the keywords {', '.join(KEYWORDS)}"
        )
    return dict(marker.kwargs)


@contextmanager
def _stand_in(request: pytest.FixtureRequest, cell: str, **defaults: Any) -> Iterator[StandIn]:
    marked = {key: value for key, value in _options(request.node).items() if key in OF_STAND_IN}
    with ExitStack() as ends:
        yield _started(request.config, ends, **({"cell": cell} | defaults | marked))


def _started(config: pytest.Config, ends: ExitStack, **options: Any) -> StandIn:
    """A cell that runs; kernels are compiled with progress on the terminal (docs/pytest.md)."""
    with _on_terminal(config):
        stand_in = ends.enter_context(StandIn(**options))
    ends.enter_context(_watched(config, stand_in))
    return stand_in


def _on_terminal(config: pytest.Config) -> AbstractContextManager[None]:
    """Inside, output is not captured."""
    capture = config.pluginmanager.getplugin("capturemanager")
    return capture.global_and_fixture_disabled() if capture else nullcontext()


# ── fixtures ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def cell(request: pytest.FixtureRequest) -> Iterator[StandIn]:
    """The default cell, or the one the marker names."""
    with _stand_in(request, "default") as stand_in:
        yield stand_in


@pytest.fixture
def text_robot(request: pytest.FixtureRequest) -> Iterator[StandIn]:
    """The text TCP robot."""
    with _stand_in(request, "text_robot") as stand_in:
        yield stand_in


@pytest.fixture
def kuka_robot(request: pytest.FixtureRequest) -> Iterator[StandIn]:
    """The KUKA with its G-code server; `kuka_robot.address("kuka.kuka_eki.command")`."""
    with _stand_in(request, "kuka_eki") as stand_in:
        yield stand_in


@pytest.fixture
def grbl_robot(request: pytest.FixtureRequest) -> Iterator[StandIn]:
    """A machine with six axes behind grblHAL; `cell="default"` has an arm at `g60.grblhal`."""
    with _stand_in(request, "grblhal_6axis") as stand_in:
        yield stand_in


@pytest.fixture
def robot(request: pytest.FixtureRequest) -> "Iterator[VirtualController]":
    """A G60, or the first arm of the marker's cell, in this process: connected and enabled, on
    virtual time, without a socket."""
    from understudy.app.kernels import OF_ROBOTS
    from understudy.cli.warm import compile_kernels
    from understudy.robots.arm.simulation_engine import SimulationEngine
    from understudy.robots.arm.virtual_controller import VirtualController

    marked = {key: value for key, value in _options(request.node).items() if key in OF_CELL}
    with _on_terminal(request.config):
        compile_kernels(*OF_ROBOTS)
    if "cell" in marked:
        engine = SimulationEngine(**marked)
        engine.start()
        arm = engine.controller
    else:
        arm = VirtualController("g60")
    arm.connect()
    arm.enable()
    with _watched(request.config, arm):
        yield arm


@pytest.fixture
def fleet(request: pytest.FixtureRequest) -> "Iterator[FleetStandIn]":
    """Ten mobile robots and their NATS server; time runs, ten times as fast as real time."""
    from understudy.robots.mobile.stand_in import FleetStandIn

    with _stand_in(request, "fleet", rate=FLEET_RATE) as cell, FleetStandIn(cell) as fleet:
        yield fleet


@pytest.fixture
def mobile_robot(request: pytest.FixtureRequest) -> "Iterator[MobileRobot]":
    """A mobile robot on virtual time, with its NATS server; the first one of the marker's cell."""
    from understudy.robots.mobile.stand_in import FleetStandIn

    with _stand_in(request, "mobile_robot") as cell, FleetStandIn(cell) as fleet:
        yield fleet.robot(fleet.robots[0])


@pytest.fixture(scope="session")
def start_cell(pytestconfig: pytest.Config) -> Iterator[Callable[..., StandIn]]:
    """Starts cells that live until the end of the session: `start_cell("text_robot", seed=7)`."""
    with ExitStack() as ends:

        def start(cell: str = "default", **options: Any) -> StandIn:
            return _started(pytestconfig, ends, cell=cell, **options)

        yield start


@pytest.fixture(scope="session")
def start_fleet(start_cell: Callable[..., StandIn]) -> "Iterator[Callable[..., FleetStandIn]]":
    """Starts mobile robots that live until the end of the session: `start_fleet(robots=3)`."""
    from understudy.robots.mobile.stand_in import FleetStandIn

    with ExitStack() as ends:

        def start(cell: str = "fleet", **options: Any) -> "FleetStandIn":
            running = start_cell(cell, **({"rate": FLEET_RATE} | options))
            return ends.enter_context(FleetStandIn(running))

        yield start
