"""Commands of the hand-eye calibration of a robot, and what its camera sees now."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from understudy.config.outside_files import FilesFolder
from understudy.errors import ConfigError, Refused
from understudy.jobs.hand_eye.config import MOST_POSES, USUAL_FILE, Method
from understudy.jobs.hand_eye.job import HandEyeJob
from understudy.operator.background import BackgroundRuns
from understudy.operator.pictures import LARGEST_WIDTH, SharedPictures, picture_answer
from understudy.operator.robots import Jobs, Robot, Robots
from understudy.operator.table import Command, command, commands_of, query
from understudy.ports.device import Preview, ShowsPicture
from understudy.ports.hmi import FILE_EXISTS
from understudy.wire.pump import Pump

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell
    from understudy.sight.lens import Lens
    from understudy.sight.targets import CalibrationTarget

HEAD = b"hand_eye_calibration:"
USUAL_WIDTH = 640
NO_CAMERA = "the cell has no picture of this camera; the corners of the last pose are shown"
PoseCount = Annotated[int, Meta(ge=0, le=MOST_POSES)]
PoseNumber = Annotated[int, Meta(ge=1, le=1000)]
Make = Callable[[], Preview]


def commands(cell: "OperatedCell") -> list[Command]:
    jobs = Jobs(cell.robots, HandEyeJob, "hand_eye")
    if not jobs:
        return []
    view = HandEyeView(jobs, cell.robots, cell.pump, cell.runs)
    return [*commands_of(HandEyeCommands(jobs, cell.files)), *commands_of(view)]


class HandEyeCommands:
    """Starts, watches and ends the calibration, and writes its file. `robot` can be left out if one
    robot is calibrated."""

    def __init__(self, jobs: Jobs[HandEyeJob], files: FilesFolder) -> None:
        self._jobs = jobs
        self._files = files

    @query(large=True)
    def hand_eye_status(self, robot: str = "") -> Any:
        """Poses, residuals, coverage and result."""
        return self._jobs.look(robot)

    @query(large=True)
    def hand_eye_picture(self, number: PoseNumber, robot: str = "") -> Any:
        """The picture of a pose (base64 of a JPEG file).

        `number`: of the pose, from 1 on.
        """

        def picture(of: Robot, job: HandEyeJob) -> dict[str, Any] | Refused:
            jpeg = job.picture(number)
            if isinstance(jpeg, Refused):
                return jpeg
            return {"robot": of.name, "number": number, "jpeg": jpeg}

        return self._jobs.ask(robot, picture)

    @query()
    def hand_eye_text(self, robot: str = "", force: bool = False) -> Any:
        """The calibration file as text.

        `force`: also of a result whose check has failed.
        """

        def file(of: Robot, job: HandEyeJob) -> dict[str, Any] | Refused:
            text = job.document(datetime.now(UTC).date().isoformat(), force=force)
            return text if isinstance(text, Refused) else {"robot": of.name, "text": text}

        return self._jobs.ask(robot, file)

    @command()
    def hand_eye_start(
        self,
        robot: str = "",
        poses: PoseCount = 0,
        method: Method | None = None,
        check: bool = False,
    ) -> Any:
        """Move, capture, compute and validate.

        `poses` and `method`: others than those of the section `hand_eye`; 0 and null: as there.
        `check`: start nothing; the answer says whether it would be refused now.
        """

        def start(job: HandEyeJob, now: int) -> Refused | None:
            if check:
                return job.not_startable(now)
            return job.start(now, poses=poses, method=method or "")

        return self._jobs.act(robot, start)

    @command()
    def hand_eye_capture(self, robot: str = "") -> Any:
        """One more pose where the arm is."""
        return self._jobs.act(robot, HandEyeJob.capture_here)

    @command()
    def hand_eye_delete_last(self, robot: str = "") -> Any:
        """Delete the last pose."""
        return self._jobs.act(robot, HandEyeJob.delete_last)

    @command()
    def hand_eye_compute(self, robot: str = "", method: Method | None = None) -> Any:
        """The camera from the poses so far."""
        return self._jobs.act(robot, lambda job, now: job.compute(now, method=method or ""))

    @command()
    def hand_eye_validate(self, robot: str = "") -> Any:
        """Check it where the arm is."""
        return self._jobs.act(robot, HandEyeJob.validate)

    @command()
    def hand_eye_save(
        self,
        robot: str = "",
        file: Annotated[str, Meta(max_length=1024)] = USUAL_FILE,
        force: bool = False,
        replace: bool = True,
    ) -> Any:
        """Write the calibration file.

        `file`: its name in the folder for files of this run. `force`: also a result whose check has
        failed. `replace`: false refuses a file that exists already.
        """
        found = self.hand_eye_text(robot, force)
        if isinstance(found, Refused):
            return found
        try:
            if not replace and self._files.has(file):
                return Refused(f"{file} exists already", code=FILE_EXISTS)
            path = self._files.write(file, found["text"].encode(), _is_ours)
        except ConfigError as problem:
            return Refused(str(problem))
        return {**found, "file": str(path)}

    @command()
    def hand_eye_cancel(self, robot: str = "") -> Any:
        """End the run; captured poses stay."""
        return self._jobs.act(robot, HandEyeJob.cancel)

    @command()
    def hand_eye_reset(self, robot: str = "") -> Any:
        """Remove all poses and the result."""
        return self._jobs.act(robot, HandEyeJob.reset)


def _is_ours(head: bytes) -> bool:
    """Another calibration file is replaced, files of other kinds are not."""
    return HEAD in head


# ── what the camera sees now ────────────────────────────────────────────────────────────────────


class HandEyeView:
    """Pictures are made, and the target is looked for, in a thread; viewers who ask at the same
    time share one answer."""

    def __init__(
        self, jobs: Jobs[HandEyeJob], robots: Robots, pump: Pump, runs: BackgroundRuns
    ) -> None:
        self._jobs = jobs
        self._cameras = Jobs(robots, ShowsPicture, "camera")
        self._pump = pump
        self._shared = SharedPictures(runs, 2 * len(jobs.all()))

    @query(large=True)
    def hand_eye_view(
        self,
        robot: str = "",
        depth: bool = False,
        width: Annotated[int, Meta(ge=160, le=LARGEST_WIDTH)] = USUAL_WIDTH,
    ) -> Any:
        """What the camera sees now, with the target of the calibration.

        `robot`: can be left out if one robot is calibrated. `depth`: the depth image instead, in
        which the target is not looked for.
        """

        def view(of: Robot, job: HandEyeJob) -> Any:
            camera = self._cameras.all().get(of.name)
            if camera is None:
                return without_picture(of.name, job)
            target = None if depth else job.config.target

            def begin() -> Callable[[], Any] | Refused:
                now = self._pump.now()
                make = camera.preview(now, width, depth=depth)
                if isinstance(make, Refused):
                    return make
                return lambda: view_answer(of.name, now, make, job.lens, target)

            return self._shared.answer((of.name, depth, width), begin)

        return self._jobs.ask(robot, view)


def without_picture(robot: str, job: Any) -> dict[str, Any]:
    """The answer for a camera that the cell does not draw."""
    corners, lens = job.last_corners(), job.lens
    return {
        "robot": robot,
        "width": lens.width,
        "height": lens.height,
        "data": "",
        "corners": corners,
        "found": bool(corners),
        "reason": NO_CAMERA,
    }


def view_answer(
    robot: str, now: int, make: Make, lens: "Lens", target: "CalibrationTarget | None"
) -> dict[str, Any]:
    """`corners`: pixels of the corners of the target; `reason`: why it is not found."""
    preview = make()
    answer = picture_answer(robot, now, lambda: preview)
    if target is None:
        return answer | {"corners": [], "found": None, "reason": ""}
    return answer | sighting_facts(preview, lens, target)


def sighting_facts(preview: Preview, lens: "Lens", target: "CalibrationTarget") -> dict[str, Any]:
    # Here: the commands of a cell without cameras must not load OpenCV.
    from understudy.sight.lens import resized
    from understudy.sight.markers import target_finder

    height, width, _ = preview.picture.shape
    seen = target_finder(target)(preview.picture, resized(lens, width, height))
    if isinstance(seen, str):
        return {"corners": [], "found": False, "reason": seen}
    return {"corners": seen.corners.pixels.tolist(), "found": True, "reason": ""}
