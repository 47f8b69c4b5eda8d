"""`understudy vision`: the process that takes pictures, finds objects and answers over ZeroMQ."""

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.config import load_config
from understudy.errors import ConfigError
from understudy.ports.access import is_loopback
from understudy.vision.detector_config import require_opencv

if TYPE_CHECKING:
    from understudy.vision.process import Place, VisionSetup

log = logging.getLogger(__name__)


CellName = Annotated[str, typer.Option(help="cell file or shipped cell with `vision`")]
RobotName = Annotated[str, typer.Option(help="robot of --cell; default: the one that sees")]
ConfigFile = Annotated[
    Path | None, typer.Option(help="file with a section `vision`, e.g. pickplace.yaml")
]
CameraAddress = Annotated[
    str, typer.Option(help="understudy://HOST:PORT/NAME, opencv:0, opencv:FILE or files:DIR")
]
HandEyeFile = Annotated[
    Path | None, typer.Option(help="calibration file: place and intrinsics of the camera")
]
Host = Annotated[str, typer.Option(help="address to listen on")]
PortNumber = Annotated[
    int | None, typer.Option(min=0, max=65535, help="default: of the section, 5570; 0: any")
]
Trust = Annotated[bool, typer.Option("--trust-network", help="let other machines reach --host")]
Record = Annotated[
    Path | None, typer.Option(help="folder for every frame; files:DIR plays them again")
]
ReadyPath = Annotated[Path | None, typer.Option(help="write the address here as JSON")]
FollowStdin = Annotated[bool, typer.Option("--follow-stdin", hidden=True)]


def vision(
    cell: CellName = "",
    robot: RobotName = "",
    config: ConfigFile = None,
    camera: CameraAddress = "",
    hand_eye: HandEyeFile = None,
    host: Host = "127.0.0.1",
    port: PortNumber = None,
    trust_network: Trust = False,
    record: Record = None,
    ready_file: ReadyPath = None,
    follow_stdin: FollowStdin = False,
) -> None:
    """Run the vision process: pictures in, detected objects out."""
    _check_host(host, trust_network=trust_network)
    require_opencv()
    from understudy.vision.process import Place, ended_by_signals

    setup = _setup(cell, robot, config, camera, hand_eye)
    number = _port_of(setup.where) if port is None else port
    follow = sys.stdin.fileno() if follow_stdin else None
    with ended_by_signals() as signals:
        _serve(setup, Place(host, number, follow, signals), record, ready_file)


def _serve(
    setup: "VisionSetup", place: "Place", record: Path | None, ready_file: Path | None
) -> None:
    from understudy.app.ready_file import ReadyFile
    from understudy.vision.process import serve

    file = None if ready_file is None else ReadyFile(ready_file, "")

    def ready(address: str) -> None:
        print(f"vision: {address}, camera {setup.camera}", flush=True)
        print("ready", flush=True)
        if file is not None:
            file.write("vision", 1.0, {"vision": address})

    server = setup.server(record)
    try:
        serve(server.handle_parts, place, ready)
    finally:
        server.close()
        if file is not None:
            file.remove()


def _setup(
    cell: str, robot: str, config: Path | None, camera: str, hand_eye: Path | None
) -> "VisionSetup":
    from understudy.vision.process import setup_of_camera, setup_of_cell, setup_of_file

    if cell and config:
        raise ConfigError("give --cell or --config, not both")
    if cell:
        setup = setup_of_cell(load_config(cell), robot, camera)
    elif config:
        setup = setup_of_file(config, camera)
    elif camera:
        setup = setup_of_camera(camera)
    else:
        raise ConfigError("which camera?", allowed="--cell CELL, --config FILE or --camera ADDRESS")
    return setup.with_calibration(hand_eye) if hand_eye else setup


def _check_host(host: str, *, trust_network: bool) -> None:
    """Raises ConfigError if other machines can reach the process and that is not wanted."""
    if is_loopback(host):
        return
    if not trust_network:
        raise ConfigError(
            f"the vision process on {host or 'every address'} can be reached from other machines, "
            "and it asks for no token; serve it on 127.0.0.1, or give --trust-network"
        )
    log.warning("every machine that reaches %s can use the camera and calibrate it", host)


def _port_of(address: str) -> int:
    return int(address.rpartition(":")[2])
