"""`understudy vision`: the process that takes pictures, finds objects and answers over ZeroMQ.

Also `understudy calibrate camera`: the intrinsics of a camera.
"""

import logging
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, TextIO

import numpy as np
from msgspec import structs

from understudy.cli.job_client import check_places, fail, show_rows
from understudy.cli.options import (
    JsonOption,
    cell_option,
    json_beside_text,
    put_json,
    put_whole,
    robot_option,
)
from understudy.cli.parameters import Option
from understudy.config import load_config
from understudy.config.files import read_text
from understudy.config.typed import read
from understudy.errors import ConfigError, Refused, located_at
from understudy.ports.access import is_loopback
from understudy.sight.calibration_file import (
    INTRINSICS_ONLY,
    Calibration,
    Intrinsics,
    calibration_text,
)
from understudy.sight.lens import Lens
from understudy.sight.targets import CalibrationTarget
from understudy.space.transform import rows_mm
from understudy.vision.cameras import open_camera
from understudy.vision.config import read_calibration
from understudy.vision.detector_config import require_opencv
from understudy.vision.interface import CameraError, CameraSource, NoMorePicturesError, Shot

if TYPE_CHECKING:
    from understudy.sight.intrinsics import BoardPicture, LensResult
    from understudy.sight.markers import Board
    from understudy.vision.process import ListenAddress, VisionSetup

log = logging.getLogger(__name__)


CellName = Annotated[str, cell_option("a cell with `vision`")]
RobotName = Annotated[str, robot_option("robot of --cell; default: the one that sees")]
ConfigFile = Annotated[Path | None, Option(help="file with a section `vision`")]
CameraAddress = Annotated[
    str, Option(help="understudy://HOST:PORT/NAME, opencv:0, opencv:FILE or files:DIR")
]
HandEyeFile = Annotated[
    Path | None, Option(help="calibration file: place and intrinsics of the camera")
]
Host = Annotated[str, Option(help="address to listen on")]
PortNumber = Annotated[
    int | None, Option(min=0, max=65535, help="default: of the section, 5570; 0: any")
]
Trust = Annotated[bool, Option("--trust-network", help="let other machines reach --host")]
Record = Annotated[Path | None, Option(help="folder for every frame; files:DIR plays them again")]
ReadyPath = Annotated[Path | None, Option(help="write the address here as JSON")]
FollowStdin = Annotated[bool, Option("--follow-stdin", hidden=True)]


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
    from understudy.vision.process import ListenAddress, ended_by_signals

    setup = _setup(cell, robot, config, camera, hand_eye)
    number = int(setup.where.rpartition(":")[2]) if port is None else port
    follow = sys.stdin.fileno() if follow_stdin else None
    with json_beside_text(json) as lines, ended_by_signals() as signals:
        _serve(setup, ListenAddress(host, number, follow, signals), record, ready_file, lines)


def _serve(
    setup: "VisionSetup",
    place: "ListenAddress",
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


# ── understudy calibrate camera ─────────────────────────────────────────────────────────────────

USUAL_PICTURES, MOST_PICTURES = 20, 200
DISTORTION = ("k1", "k2", "p1", "p2", "k3")
RESIDUALS_PER_LINE = 4
"""So that a line of them is whole in a terminal of 80 columns."""
BOARD = re.compile(r"(charuco|chessboard):(\d{1,9})x(\d{1,9}):(\d+(?:\.\d+)?)", re.ASCII)
GRAB_SECONDS = 5.0
NO_MATRIX = rows_mm(np.eye(4))
OutOption = Annotated[Path | None, Option(help="write the calibration file here")]
BoardOption = Annotated[
    str, Option(help="TYPE:COLUMNSxROWS:SQUARE_MM, with charuco or chessboard as type")
]
LensCameraOption = Annotated[
    str, Option(help="a camera: opencv:0, understudy://127.0.0.1:5571/g60")
]


def camera(
    camera: LensCameraOption = "",
    files: Annotated[Path | None, Option(help="a folder of pictures instead")] = None,
    board: BoardOption = "charuco:7x5:30",
    pictures: Annotated[
        int | None,
        Option(min=8, max=200, help="pictures to take; default: 20, or all of the folder"),
    ] = None,
    interval_s: Annotated[
        float, Option(min=0, max=60, help="wall time between two pictures of a camera")
    ] = 1.0,
    out: OutOption = None,
    json: JsonOption = None,
) -> None:
    """Find focal lengths, centre and distortion from pictures of a board.

    With `--out` the intrinsics of an existing calibration file are replaced.
    """
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
        put_whole(out, with_intrinsics(before, result.lens).encode())
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


def board_of(text: str) -> "Board":
    """`charuco:7x5:30`: type, columns and rows of squares, side of a square in millimetres."""
    require_opencv()
    from understudy.sight import markers

    target = _target(text)
    with located_at("--board"):
        if target.type == "charuco":
            target.check()
        return markers.board_of(target)


def _target(text: str) -> CalibrationTarget:
    """The board with the limits of `hand_eye.target`. A chess board with an even sum of columns and
    rows is accepted: the lens does not depend on the end at which its corners are counted."""
    found = BOARD.fullmatch(text)
    if found is None:
        raise ConfigError(
            "not a board", key="--board", value=text, allowed="charuco:7x5:30 or chessboard:9x6:25"
        )
    kind, columns, rows, square = found.groups()
    keys = {"type": kind, "columns": int(columns), "rows": int(rows), "square_mm": float(square)}
    target: CalibrationTarget = read(keys, CalibrationTarget, "--board")
    return target


def calibrate_camera(
    address: str, board: "Board", count: int, *, wait: Callable[[], None]
) -> "LensResult | Refused":
    """Takes up to ``count`` pictures; fewer if a folder has no more."""
    from understudy.sight.intrinsics import calibrate_lens

    camera = open_camera(address)
    try:
        pictures, size, hint = _seen(camera, board, count, wait)
    except CameraError as problem:
        return Refused(str(problem))
    finally:
        camera.close()
    return Refused(hint) if hint else calibrate_lens(board, pictures, *size)


def _seen(
    camera: CameraSource, board: "Board", count: int, wait: Callable[[], None]
) -> "tuple[list[BoardPicture], tuple[int, int], str]":
    """What the pictures show, their size, and a hint where none shows a board of this size."""
    from understudy.sight.intrinsics import BoardPicture
    from understudy.sight.markers import other_size

    found: list[BoardPicture] = []
    size, hint = (0, 0), ""
    for number in range(count):
        try:
            picture = camera.grab(Shot(), GRAB_SECONDS).picture
        except NoMorePicturesError:
            if number == 0:
                raise
            break
        height, width, _ = picture.shape
        if size not in ((0, 0), (width, height)):
            first = f"{size[0]} × {size[1]}"
            raise CameraError(f"a picture has {width} × {height} pixels, the first one {first}")
        size = (width, height)
        found.append(BoardPicture(*board.find(picture)))
        hint = hint or ("" if len(found[-1].numbers) else other_size(board, picture))
        wait()
    return found, size, "" if any(len(each.numbers) for each in found) else hint


def calibration_at(file: Path, date: str) -> Calibration:
    """The calibration in a file; without a file one that does not know the place of the camera."""
    if file.exists():
        return read_calibration(read_text(file), str(file))
    return Calibration(NO_MATRIX, method=INTRINSICS_ONLY, date=date)


def with_intrinsics(calibration: Calibration, lens: Lens) -> str:
    """The text of its file with this lens; the rest stays."""
    return calibration_text(structs.replace(calibration, camera_intrinsics=Intrinsics.of(lens)))
