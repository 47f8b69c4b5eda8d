"""Vision processes of a cell: started with it, started again when they die, ended with it."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from understudy.app.live import Live
from understudy.config import CellConfig
from understudy.config.files import name_of_cell
from understudy.errors import ConfigError, located_at
from understudy.vision.assembly import section_in_use
from understudy.vision.config import VisionConfig
from understudy.vision.detector_config import require_opencv
from understudy.wire.child_process import ChildProcess, Program
from understudy.wire.zmq_request import AskedProcess

log = logging.getLogger(__name__)

START_SECONDS = 60.0
"""Wall time in which a process must be ready."""
LONGEST_DELAY_SECONDS = 0.5
"""A process that dies often is started at most this often: pick & place waits for it."""
SAYS_ADDRESS, SAYS_READY = "vision: ", "ready"


class VisionProcess:
    """The process that one robot of the cell asks. ``ready``: called once, with its endpoint, its
    name in words and its address."""

    def __init__(
        self, live: Live, robot: str, vision: VisionConfig, ready: Callable[[str, str, str], None]
    ) -> None:
        self._live = live
        self._robot = robot
        self._camera = camera_address(live.config, live.endpoints, robot, vision.camera)
        self._port = 0 if live.ephemeral else urlsplit(vision.camera_address).port or 0
        self._ready = ready
        self._started = asyncio.Event()
        self._is_up = False
        self._address = ""
        self._serving: int | None = None
        program = Program(
            f"the vision process of {robot}",
            self._command,
            read_line=self._read_line,
            longest_delay=LONGEST_DELAY_SECONDS,
            ended=self._started.set,
        )
        self._child = ChildProcess(program)
        self._ask_at(vision.camera_address)  # where nothing is asked until the process is ready

    def _ask_at(self, address: str) -> None:
        self._live.ask(self.endpoint, AskedProcess(address, self.serving))

    def serving(self) -> int | None:
        """The number of the process, while it runs and is ready; asked from any thread."""
        number = self._serving
        return number if number == self._child.pid and self._child.runs() else None

    @property
    def pid(self) -> int | None:
        return self._child.pid

    @property
    def endpoint(self) -> str:
        return f"{self._robot}.vision"

    def start(self) -> None:
        self._child.supervise()

    async def wait(self) -> None:
        """Waits until the process answers, or has failed to start."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                await self._started.wait()

    def check(self) -> None:
        """Raises ConfigError if the process is not up."""
        if not self._is_up:
            raise ConfigError(
                "the vision process cannot be started: see its message above",
                key=f"robots.{self._robot}.vision",
            )

    async def stop(self) -> None:
        await self._child.stop()

    def _command(self) -> list[str]:
        """The port stays the same after a restart."""
        config = self._live.config
        return [
            *(sys.executable, "-m", "understudy", "vision", "--follow-stdin"),
            f"--cell={name_of_cell(config.document.file)}",
            f"--robot={self._robot}",
            f"--camera={self._camera}",
            f"--port={self._port}",
        ]

    def _read_line(self, line: str) -> None:
        if line.startswith(SAYS_ADDRESS):
            self._address = line.removeprefix(SAYS_ADDRESS).partition(",")[0]
            self._port = urlsplit(self._address).port or 0
        elif line != SAYS_READY:
            log.info("vision of %s: %s", self._robot, line)
        elif self._is_up:
            self._serving = self.pid
            log.info("the vision process of %s is back", self._robot)
        else:
            self._serving, self._is_up = self.pid, True
            self._started.set()
            self._ask_at(self._address)
            self._ready(self.endpoint, f"Vision of {self._robot}", self._address)


class VisionProcesses:
    """One for each robot whose section `vision` has `source: process` and `start: true`."""

    def __init__(self, live: Live, ready: Callable[[str, str, str], None]) -> None:
        self._live = live
        self._all: list[VisionProcess] = []
        for name, robot in live.config.robots.items():
            vision = section_in_use(robot.sections)
            if vision is not None and vision.source == "process" and vision.start:
                with located_at(f"robots.{name}.vision"):
                    require_opencv()
                    self._all.append(VisionProcess(live, name, vision, ready))

    def start(self) -> None:
        for each in self._all:
            each.start()

    async def wait(self) -> None:
        await asyncio.gather(*(each.wait() for each in self._all))

    def check(self) -> None:
        """Raises ConfigError if one is not up, unless the cell ends."""
        for each in self._all:
            if not self._live.finished.is_set():
                each.check()

    def endpoints(self) -> list[str]:
        return [each.endpoint for each in self._all]

    async def stop(self) -> None:
        await asyncio.gather(*(each.stop() for each in self._all))


def camera_address(config: CellConfig, endpoints: Mapping[str, str], robot: str, given: str) -> str:
    """The camera that the section names. The robot's own one is where it listens now: with
    `--ephemeral` that is not the port of the file."""
    own = endpoints.get(f"{robot}.camera")
    if given and not (own and _is_own(config, robot, given)):
        return given
    if own is None:
        raise ConfigError(
            "the vision process cannot reach the camera of the robot",
            key="camera",
            allowed=f"robots.{robot}.faces.camera: {{port: 5571}}, or another camera here",
        )
    return f"understudy://{urlsplit(own).netloc}/{robot}"


def _is_own(config: CellConfig, robot: str, given: str) -> bool:
    """Whether this is the address of the robot's own camera in the cell file."""
    place, listens = urlsplit(given), config.endpoints()[f"{robot}.camera"].listens_on()
    host, port = listens or ("", 0)
    here = place.hostname in ("127.0.0.1", "localhost", "::1", host)
    return here and (place.scheme, place.port, place.path) == ("understudy", port, f"/{robot}")
