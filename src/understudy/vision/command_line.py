"""`understudy vision`: the process that takes pictures, finds objects and answers over ZeroMQ.

Also `understudy calibrate camera`: the intrinsics of a camera.
"""

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from understudy.cli.job_client import check_places, fail, show_rows, write_whole
from understudy.cli.options import JsonOption, cell_option, json_beside_text, put_json, robot_option
from understudy.config import load_config
from understudy.errors import ConfigError, Refused
from understudy.ports.access import is_loopback
from understudy.vision.detector_config import require_opencv

if TYPE_CHECKING:
    from understudy.sight.intrinsics import LensResult
    from understudy.vision.process import Place, VisionSetup

log = logging.getLogger(__name__)


CellName = Annotated[str, cell_option("a cell with `vision`")]
RobotName = Annotated[str, robot_option("robot of --cell; default: the one that sees")]
ConfigFile = Annotated[Path | None, typer.Option(help="file with a section `vision`")]
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
    json: JsonOption = None,
) -> None:
    """Run the vision process: pictures in, detected objects out."""
    _check_host(host, trust_network=trust_network)
    require_opencv()
    from understudy.vision.process import Place, ended_by_signals

    setup = _setup(cell, robot, config, camera, hand_eye)
    number = _port_of(setup.where) if port is None else port
    follow = sys.stdin.fileno() if follow_stdin else None
    with json_beside_text(json) as lines, ended_by_signals() as signals:
        _serve(setup, Place(host, number, follow, signals), record, ready_file, lines)


def _serve(
    setup: "VisionSetup",
    place: "Place",
    record: Path | None,
    ready_file: Path | None,
    lines: TextIO | None,
) -> None:
    from understudy.app.ready_file import ReadyFile
    from understudy.vision.process import serve

    file = None if ready_file is None else ReadyFile(ready_file, "")

    def ready(address: str) -> None:
        print(f"vision: {address}, camera {setup.camera}", flush=True)
        print("ready", flush=True)
        if lines:
            print(dumps({"vision": address, "camera": str(setup.camera)}), file=lines, flush=True)
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


# ── understudy calibrate camera ─────────────────────────────────────────────────────────────────

USUAL_PICTURES, MOST_PICTURES = 20, 200
DISTORTION = ("k1", "k2", "p1", "p2", "k3")
RESIDUALS_PER_LINE = 4
"""So that a line of them is whole in a terminal of 80 columns."""
OutOption = Annotated[Path | None, typer.Option(help="write the calibration file here")]
BoardOption = Annotated[
    str, typer.Option(help="TYPE:COLUMNSxROWS:SQUARE_MM, with charuco or chessboard as type")
]
LensCameraOption = Annotated[
    str, typer.Option(help="a camera: opencv:0, understudy://127.0.0.1:5571/g60")
]


def camera(
    camera: LensCameraOption = "",
    files: Annotated[Path | None, typer.Option(help="a folder of pictures instead")] = None,
    board: BoardOption = "charuco:7x5:30",
    pictures: Annotated[
        int | None,
        typer.Option(min=8, max=200, help="pictures to take; default: 20, or all of the folder"),
    ] = None,
    interval_s: Annotated[
        float, typer.Option(min=0, max=60, help="wall time between two pictures of a camera")
    ] = 1.0,
    out: OutOption = None,
    json: JsonOption = None,
) -> None:
    """Find focal lengths, centre and distortion from pictures of a board.

    With `--out` the intrinsics of an existing calibration file are replaced.
    """
    from understudy.vision.lens_run import (
        board_of,
        calibrate_camera,
        calibration_at,
        with_intrinsics,
    )

    if bool(camera) == bool(files):
        raise ConfigError("give one of --camera and --files")
    address = camera or f"files:{files}"
    count = pictures or (MOST_PICTURES if files else USUAL_PICTURES)
    wait = (lambda: None) if files else (lambda: sleep(interval_s))
    check_places(out)
    before = calibration_at(out, datetime.now(UTC).date().isoformat()) if out is not None else None
    result = calibrate_camera(address, board_of(board), count, wait=wait)
    if isinstance(result, Refused):
        fail(f"{address}: {result.reason}")
    if out is not None and before is not None:
        write_whole(out, with_intrinsics(before, result.lens))
    _show_lens(result, json)


def _show_lens(result: "LensResult", json: str | None) -> None:
    lens = result.lens
    pixels = {"fx": lens.fx, "fy": lens.fy, "cx": lens.cx, "cy": lens.cy}
    names = (*pixels, *DISTORTION)
    deviations = dict(zip(names, result.deviations, strict=True))
    pictures = {each + 1: rms for each, rms in zip(result.used, result.picture_rms, strict=True)}
    facts = {"distortion": lens.distortion, "rms_px": result.rms}
    facts |= {"deviations": deviations, "picture_rms_px": pictures}
    if put_json(json, {**pixels, **facts}):
        return
    factors = dict(zip(DISTORTION, lens.distortion, strict=True))
    rows: dict[str, str | list[str]] = {
        name: f"{value:.3f} ± {deviations[name]:.3f} px" for name, value in pixels.items()
    }
    rows |= {name: f"{value:.5f} ± {deviations[name]:.5f}" for name, value in factors.items()}
    rows["residual"] = f"{result.rms:.3f} px"
    rows["of each picture"] = residual_lines(pictures)
    rows["pictures"] = f"{len(result.used)} used, {result.coverage:.0%} of the area"
    show_rows(rows)


def residual_lines(pictures: Mapping[int, float]) -> list[str]:
    """Number and residual of every picture, several to a line."""
    texts = [f"{number:>3}: {rms:.3f}" for number, rms in pictures.items()]
    starts = range(0, len(texts), RESIDUALS_PER_LINE)
    return [", ".join(texts[start : start + RESIDUALS_PER_LINE]) for start in starts]
