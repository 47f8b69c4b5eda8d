"""The vision process: what it works with, and its loop, a REP socket of ZeroMQ around a server.

It is set up from a cell file, from a file of its own, or from options. One request at a time; each
gets a reply. A message beyond MAXMSGSIZE, or bytes that are not ZMTP, cost their sender its
connection and nothing else.
"""

import errno
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import zmq

from understudy.config import CellConfig
from understudy.config.document import parse
from understudy.config.files import find_calibration, read_beside, read_text
from understudy.config.typed import read
from understudy.errors import ConfigError, unknown
from understudy.sight.calibration_file import Calibration
from understudy.sight.lens import CameraModel, Lens
from understudy.vision import VISION
from understudy.vision.assembly import camera_of_robot, section_in_use
from understudy.vision.cameras import open_camera
from understudy.vision.config import CALIBRATION_FILE, VisionConfig, camera_of, read_calibration
from understudy.vision.detector_config import DetectorChoice, build_detectors
from understudy.vision.interface import ReadFile
from understudy.vision.server import Eye, Named, VisionServer

MARKERS: Sequence[Mapping[str, Any]] = ({"kind": "markers"},)
"""The detectors of a process that was given none: those of the design document."""


@dataclass(frozen=True)
class VisionSetup:
    """What a vision process is started with. `camera`: its address. `where`: the address at which
    the section expects the process. `located`: an error of the section with its file, line and key.
    """

    camera: str
    eye: Eye
    detectors: Sequence[Mapping[str, Any]] = MARKERS
    where: str = VisionConfig().camera_address
    read_file: ReadFile = lambda name: read_beside(name, beside="")
    located: Callable[[ConfigError], ConfigError] = lambda problem: problem

    def server(self, record: Path | None = None) -> VisionServer:
        """A server with its camera opened; ``record``: a folder for the frames."""
        try:
            detectors = [Named(*row) for row in build_detectors(self.detectors, self.read_file)]
        except ConfigError as problem:
            raise self.located(problem) from None
        build = partial(DetectorChoice(self.detectors).build, read_file=self.read_file)
        camera = open_camera(self.camera)
        if record is not None:
            from understudy.vision.cameras.files import RecordingCamera

            camera = RecordingCamera(camera, record)
        return VisionServer(camera, detectors, self.eye, build=build, source=self.camera)

    def with_calibration(self, file: Path) -> "VisionSetup":
        """The place and the intrinsics of a calibration file."""
        calibration = read_calibration(read_text(file), str(file))
        eye = Eye(
            mount=calibration.mount or self.eye.mount,
            place=calibration.place() if calibration.has_place() else self.eye.place,
            lens=_lens_of(calibration) or self.eye.lens,
        )
        return replace(self, eye=eye)


def setup_of_camera(address: str) -> VisionSetup:
    """Markers seen by a camera that is not calibrated."""
    return VisionSetup(address, Eye())


def setup_of_cell(config: CellConfig, robot: str = "", camera: str = "") -> VisionSetup:
    """The set-up of the section `vision` of a robot; an empty name means the robot that has one.
    ``camera``: goes before that of the section."""
    name = robot or _robot_with_vision(config)
    if name not in config.robots:
        raise unknown("robot", name, config.robots, key="--robot")
    section = config.robots[name].sections.get(VISION) or VisionConfig()
    config.document.at(("robots", name, "vision"), section.check_address)
    return VisionSetup(
        camera=camera or section.camera or _virtual_camera(config, name),
        eye=_eye(camera_of_robot(name, section, config.document.file)),
        detectors=section.detectors or MARKERS,
        where=section.camera_address,
        read_file=config.read_beside,
        located=partial(config.document.error, ("robots", name, "vision")),
    )


def setup_of_file(file: Path, camera: str = "") -> VisionSetup:
    """The set-up of the section `vision` of a file, e.g. of pickplace.yaml."""
    document = parse(read_text(file), str(file))
    given = (document.value or {}).get("vision")
    if given is None:
        raise ConfigError("the section `vision` is missing", file=str(file))
    section: VisionConfig = document.at(("vision",), read, given, VisionConfig)
    document.at(("vision",), section.check_address)
    if not camera and not section.camera:
        allowed = "understudy://HOST:PORT/NAME, opencv:0 or files:DIR"
        missing = ConfigError("this key is missing", key="camera", allowed=allowed)
        raise document.error(("vision",), missing)
    name, calibration = section.calibration_file, None
    if name:
        text = find_calibration(name, beside=str(file))
        if text is None:
            missing = ConfigError("there is no such file", value=name)
            raise document.error(("vision", CALIBRATION_FILE), missing)
        calibration = read_calibration(text, name)
    return VisionSetup(
        camera=camera or section.camera,
        eye=_eye_of_section(section, calibration),
        detectors=section.detectors or MARKERS,
        where=section.camera_address,
        read_file=lambda name: read_beside(name, beside=str(file)),
        located=partial(document.error, ("vision",)),
    )


def _robot_with_vision(config: CellConfig) -> str:
    names = [name for name, robot in config.robots.items() if VISION in robot.sections]
    names = names or [n for n, robot in config.robots.items() if section_in_use(robot.sections)]
    if not names:
        raise ConfigError("no robot of this cell has the section `vision`")
    if len(names) != 1:
        raise ConfigError("which robot? Give --robot", allowed=", ".join(names))
    return names[0]


def _virtual_camera(config: CellConfig, robot: str) -> str:
    """The address of the face `camera` of the robot."""
    wire: Any = config.endpoints().get(f"{robot}.camera")
    if wire is None:
        raise ConfigError(
            "the robot has no virtual camera for clients, and `camera` is not given",
            key=f"robots.{robot}.vision.camera",
            allowed="faces: {camera: {port: 5571}}, opencv:0, files:DIR, or --camera ADDRESS",
        )
    return f"understudy://{wire.host}:{wire.port}/{robot}"


def _eye(model: CameraModel) -> Eye:
    return Eye(model.mount, model.at, model.lens)


def _eye_of_section(section: VisionConfig, calibration: Calibration | None) -> Eye:
    """Only what the file says: a frame may know its own lens."""
    eye = _eye(camera_of(section, calibration))
    placed = calibration is not None or section.camera_mm_deg is not None
    keys = ("fx_px", "fy_px", "cx_px", "cy_px", "distortion")
    seen_through = any(getattr(section, key) is not None for key in keys) or (
        calibration is not None and calibration.camera_intrinsics is not None
    )
    return Eye(eye.mount, eye.place if placed else None, eye.lens if seen_through else None)


def _lens_of(calibration: Calibration) -> Lens | None:
    """The lens; for pictures of any size if the file does not say it."""
    known = calibration.camera_intrinsics
    return None if known is None else known.lens()


# ── the loop ──────────────────────────────────────────────────────────────────────────────────────

LARGEST_MESSAGE = 16 * 1024 * 1024
"""Bytes that are read at all; a request may have far fewer, a longer one gets an error reply."""
MOST_WAITING = 100
"""Requests of one client that wait."""
SEND_MS = 1000
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Answer = Callable[[Sequence[bytes]], bytes]
Socket = zmq.Socket[bytes]


class Ended(BaseException):
    """A signal asks the process to end; no handler of errors stops it on its way."""


@contextmanager
def ended_by_signals() -> Iterator[int]:
    """A signal ends what runs inside, at once. The file that it gives can be read when a signal has
    come: one that comes right before a poll, or to another thread, does not interrupt the poll."""

    def end(number: int, frame: FrameType | None) -> None:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)  # a second one does not disturb the clean end
        raise Ended

    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    former = {each: signal.signal(each, end) for each in ENDING}
    try:
        yield reader
    except Ended:
        pass
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)


class ListenAddress(NamedTuple):
    """Where the process listens. `follow`: the end of this open file ends it. `signals`: the file
    of `ended_by_signals`."""

    host: str = "127.0.0.1"
    port: int = 5570
    follow: int | None = None
    signals: int | None = None


def serve(answer: Answer, place: ListenAddress, ready: Callable[[str], None]) -> None:
    """Answers requests until it is interrupted. ``ready``: called with the address when it
    listens."""
    follow, signals = place.follow, place.signals
    context: zmq.Context[Socket] = zmq.Context()
    try:
        socket = _listening(context, place.host, place.port)
        ready(socket.getsockopt_string(zmq.LAST_ENDPOINT))
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLIN)
        for file in (follow, signals):
            if file is not None:
                poller.register(file, zmq.POLLIN)
        while True:
            events = dict(poller.poll())
            if signals is not None and signals in events:
                os.read(signals, 4096)  # the handler of the signal is called next
            if follow is not None and follow in events and not os.read(follow, 4096):
                return
            if socket in events:
                _answer_one(socket, answer)
    finally:
        context.destroy(linger=0)


def _answer_one(socket: Socket, answer: Answer) -> None:
    try:
        parts = socket.recv_multipart(zmq.NOBLOCK)
    except zmq.Again:
        return  # the client has gone
    try:
        socket.send(answer(parts))
    except zmq.Again:
        return


def _listening(context: zmq.Context[Socket], host: str, port: int) -> Socket:
    socket: Socket = context.socket(zmq.REP)
    for option, value in (
        (zmq.LINGER, 0),
        (zmq.MAXMSGSIZE, LARGEST_MESSAGE),
        (zmq.RCVHWM, MOST_WAITING),
        (zmq.SNDTIMEO, SEND_MS),
        # With a domain, peers of ZMTP 1 and 2 are refused: a web page could send these by HTTP.
        (zmq.ZAP_DOMAIN, b"vision"),
        (zmq.IPV6, int(":" in host)),
    ):
        socket.setsockopt(option, value)
    where = f"{f'[{host}]' if ':' in host else host}:{port}"
    try:
        socket.bind(f"tcp://{where}")
    except zmq.ZMQError as problem:
        if problem.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port {port} is taken, the vision process cannot listen on {where}; end what "
                "listens there, or choose another port: --port N of `understudy vision`, "
                "camera_address of the section `vision`"
            ) from None
        raise ConfigError(f"the vision process cannot listen on {where}: {problem}") from None
    return socket
