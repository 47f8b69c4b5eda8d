"""`understudy calibrate`: where a camera is on its robot (hand-eye), and its intrinsics."""

import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import Annotated, Any

from msgspec import structs, to_builtins

from understudy.app.build import build_cell
from understudy.app.control_client import request
from understudy.app.ready_file import Ready
from understudy.cli.end_signals import signals_as_ctrl_c
from understudy.cli.job_client import (
    ask_job,
    check_places,
    fail,
    refuse_real,
    show_rows,
    warn_if_time_stands,
)
from understudy.cli.options import (
    HtmlOption,
    JsonOption,
    ReadyFileOption,
    RunningOption,
    cell_option,
    is_quiet,
    origin,
    put_json,
    put_whole,
    robot_option,
)
from understudy.cli.parameters import Exit, Group, Option
from understudy.cli.status import one_cell
from understudy.cli.warm import compile_for_cell
from understudy.config import CellConfig, load_config
from understudy.config.typed import read
from understudy.errors import ConfigError, Refused
from understudy.jobs.hand_eye import HAND_EYE
from understudy.jobs.hand_eye.config import MOST_POSES, HandEyeConfig
from understudy.jobs.headless import chosen_robot, run_job
from understudy.registry import modules
from understudy.sight.targets import ENOUGH_POSES

calibrate = Group(
    help="Calibrate a camera: its place on the robot or in the cell, and its intrinsics.",
)

LOOK_SECONDS = 0.2
LONGEST_S = 3600.0
OutOption = Annotated[Path | None, Option(help="write the calibration file here")]
ForceOption = Annotated[
    bool, Option("--force", help="write the file also if the check of the result fails")
]
CellOption = Annotated[
    str, cell_option("it runs headless, at full speed; default: the running cell")
]
MethodOption = Annotated[
    str, Option(help="best, tsai_lenz, tsai, park, horaud, andreff or daniilidis")
]
ErrorMmOption = Annotated[
    float | None,
    Option(min=0, max=100, help="standard deviation of the robot's position, headless"),
]
ErrorDegOption = Annotated[float | None, Option(min=0, max=10, help="and of its orientation")]
RealOption = Annotated[
    bool, Option("--real", help="move the robot of the running cell also if it is REAL")
]


COMPUTED = ("DONE", "CHECK_FAILED")
"""States at the end of a run that has a result."""


@dataclass(frozen=True)
class Calibrated:
    """The result of a calibration. `status`: of the job, as the operator's query gives it; `text`:
    the calibration file, empty without a result; `pictures`: base64 of JPEG files, one for each
    pose."""

    cell: str
    robot: str
    status: dict[str, Any]
    text: str
    pictures: tuple[str, ...]


@calibrate.command("hand-eye")
def hand_eye(
    cell: CellOption = "",
    robot: Annotated[str, robot_option("robot; default: the only one with `hand_eye`")] = "",
    poses: Annotated[
        int | None, Option(min=ENOUGH_POSES, max=MOST_POSES, help="number of poses")
    ] = None,
    method: MethodOption = "",
    out: OutOption = None,
    html: HtmlOption = None,
    robot_error_mm: ErrorMmOption = None,
    robot_error_deg: ErrorDegOption = None,
    seed: Annotated[int | None, Option(help="seed of a headless run")] = None,
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    real: RealOption = False,
    force: ForceOption = False,
    json: JsonOption = None,
) -> None:
    """Move the robot to diverse poses, look at the target, compute and check the camera.

    Exit 1 if the calibration fails or its check does; then no file is written without --force.
    """
    check_places(out, html)
    errors = {"robot_error_mm": robot_error_mm, "robot_error_deg": robot_error_deg}
    if cell and real:
        raise ConfigError(
            "--cell runs a simulation: --real is for a running cell",
            allowed="understudy run CELL --real, then calibrate hand-eye --real",
        )
    if cell:
        changed = {"poses": poses, "method": method or None, **errors}
        found = _headless(cell, robot, seed, changed, force=force)
    elif any(value is not None for value in errors.values()):
        raise ConfigError(
            "--robot-error-mm and --robot-error-deg are keys of `hand_eye` in a running cell",
            allowed="--cell CELL, or these keys in the cell file",
        )
    else:
        chosen = {"poses": poses or 0, **({"method": method} if method else {})}
        found = _live(one_cell(running, ready_file), robot, chosen, real=real, force=force)
    _finish(found, out, html, json)


def _finish(found: Calibrated, out: Path | None, html: Path | None, json: str | None) -> None:
    """Writes and prints the result; exit 1 without a good one."""
    _write(found, out, html)
    _show(found, json)
    if found.status["state"] != "DONE":
        raise Exit(1)


def _headless(
    cell: str, robot: str, seed: int | None, changed: dict[str, Any], *, force: bool
) -> Calibrated:
    config = load_config(cell, seed=seed)
    name = chosen_robot(config, robot, HAND_EYE)
    config = with_hand_eye(config, name, **changed)
    compile_for_cell(config)
    date = datetime.now(UTC).date().isoformat()
    found = calibrate_headless(config, name, date=date, force=force)
    if isinstance(found, Refused):
        fail(f"{cell}: {found.reason}")
    return found


def _live(
    ready: Ready, robot: str, chosen: dict[str, Any], *, real: bool, force: bool
) -> Calibrated:
    """The calibration by the job of a running cell; of a REAL robot only with ``real``."""
    status = ask_job(ready, "hand_eye_status", robot)
    name = str(status["robot"])
    refuse_real(ready, name, allowed=real)
    ask_job(ready, "enable", name)
    try:
        with signals_as_ctrl_c():
            status = ask_job(ready, "hand_eye_start", name, **chosen)
            warn_if_time_stands(ready)
            status = _watched(ready, name, status)
    except KeyboardInterrupt:
        ask_job(ready, "hand_eye_cancel", name)
        fail(f"{ready.title}: cancelled, the robot brakes")
    written = status["state"] == "DONE" or (force and status["state"] == "CHECK_FAILED")
    text = ask_job(ready, "hand_eye_text", name, force=force)["text"] if written else ""
    numbers = range(1, status["captured"] + 1)
    pictures = [picture_of_pose(ready, name, number) for number in numbers]
    return Calibrated(ready.title, name, status, text, tuple(pictures))


def picture_of_pose(ready: Ready, robot: str, number: int) -> str:
    """Empty if there is none: a vision process may send none, and snapshots have none."""
    asked = {"do": "hand_eye_picture", "robot": robot, "number": number}
    reply = request(ready, asked)
    return str(reply["result"]["jpeg"]) if reply.get("ok") else ""


def _watched(ready: Ready, robot: str, status: dict[str, Any]) -> dict[str, Any]:
    """The status at the end of the job; prints how many poses are captured."""
    known = -1
    while status["running"]:
        if status["captured"] != known and not is_quiet():
            known = status["captured"]
            print(f"{known} of {status['wanted']} poses", file=sys.stderr)
        sleep(LOOK_SECONDS)
        status = ask_job(ready, "hand_eye_status", robot)
    return status


def _write(found: Calibrated, out: Path | None, html: Path | None) -> None:
    if out is not None and found.text:
        put_whole(out, found.text.encode())
    if html is not None:
        from understudy.jobs.hand_eye.report import report as page

        title = f"{found.cell}, {found.robot}"
        shown = page(
            found.status,
            title=title,
            text=found.text,
            pictures=found.pictures,
            origin=origin(found.cell),
        )
        put_whole(html, shown.encode())


def _show(found: Calibrated, json: str | None) -> None:
    status, result = found.status, found.status["result"]
    if put_json(json, status):
        return
    rows = {
        "robot": f"{found.cell}, {found.robot}",
        "state": f"{status['state']} {status['error']}".strip(),
        "poses": f"{status['captured']} used, {status['left_out']} left out",
    }
    if result is not None:
        rows |= result_rows(result)
    if status["checked"]:
        worst = max(each["distance_mm"] for each in status["checked"])
        rows["check"] = f"{len(status['checked'])} poses that were not used: {worst:.3f} mm at most"
    show_rows(rows)


def result_rows(result: dict[str, Any]) -> dict[str, str]:
    def numbers(values: list[float], digits: int) -> str:
        return ", ".join(f"{value:.{digits}f}" for value in values)

    camera = result["camera_mm_deg"]
    pixels, held_out = result["reprojection_error_px"], result["held_out_mm"]
    frame = "on the flange" if result["mount"] == "eye_in_hand" else "in the base"
    return {
        "method": result["method"] + (", refined" if result["refined"] else ""),
        f"camera {frame}": f"{numbers(camera[:3], 3)} mm; {numbers(camera[3:], 4)}°",
        "standard deviation": f"{numbers(result['deviations_mm'], 3)} mm; "
        f"{numbers(result['deviations_deg'], 4)}°",
        "residual": f"{result['reprojection_error_mm']:.3f} mm"
        + ("" if pixels is None else f", {pixels:.3f} px"),
        "held-out poses": "—" if held_out is None else f"{held_out:.3f} mm",
    }


def with_hand_eye(config: CellConfig, robot: str, **changed: Any) -> CellConfig:
    """Other keys of the section `hand_eye` of a robot; None: as in the file."""
    given = config.robots[robot]
    section = given.sections.get(HAND_EYE) or HandEyeConfig()
    keys = {key: value for key, value in changed.items() if value is not None}
    checked = read(to_builtins(section) | to_builtins(keys), HandEyeConfig, "hand_eye")
    sections = {**given.sections, HAND_EYE: checked}
    robots = {**config.robots, robot: structs.replace(given, sections=sections)}
    return replace(config, robots=robots)


def calibrate_headless(
    config: CellConfig, robot: str, *, date: str, force: bool = False
) -> Calibrated | Refused:
    """Runs the job of a robot to its end, or for an hour of simulated time at most. ``force``:
    there is a file also if the check fails."""
    cell = build_cell(config)
    job: Any = cell.components[f"{robot}.{HAND_EYE}"]
    if refused := run_job(cell, robot, job, LONGEST_S):
        return Refused(refused.reason, refused.code)
    if job.is_running():
        job.cancel(cell.now)
    status = job.status(cell.now)
    text = job.document(date, force=force) if status.state in COMPUTED else ""
    pictures = (job.picture(number) for number in range(1, status.captured + 1))
    return Calibrated(
        config.name,
        robot,
        {"robot": robot, **to_builtins(status)},
        "" if isinstance(text, Refused) else text,
        tuple("" if isinstance(each, Refused) else each for each in pictures),
    )


for _, _, job in modules("jobs"):
    if hasattr(job, "add_calibrations"):
        job.add_calibrations(calibrate)
