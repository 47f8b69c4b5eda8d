"""Commands for the hand-eye calibration of a robot."""

from datetime import UTC, datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from understudy.config.outside_files import FilesFolder
from understudy.errors import ConfigError, Refused
from understudy.jobs.hand_eye.config import MOST_POSES, Method
from understudy.operator.jobs import Act, Jobs, OfJob, called
from understudy.operator.robots import Robots
from understudy.operator.table import Command
from understudy.ports.hmi import FILE_EXISTS

HAND_EYE = "hand_eye"
HEAD = b"hand_eye_calibration:"
USUAL_FILE = "hand_eye_calib.yaml"


class Start(Struct, frozen=True, forbid_unknown_fields=True):
    """`poses` and `method`: others than those of the section `hand_eye`; 0 and null: as there."""

    robot: str = ""
    poses: Annotated[int, Meta(ge=0, le=MOST_POSES)] = 0
    method: Method | None = None


class Compute(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str = ""
    method: Method | None = None


class OfText(Struct, frozen=True, forbid_unknown_fields=True):
    """`force`: also of a result whose check has failed."""

    robot: str = ""
    force: bool = False


class Save(Struct, frozen=True, forbid_unknown_fields=True):
    """`file`: its name in the folder for files of this run. `force`: also a result whose check has
    failed. `replace`: false refuses a file that exists already."""

    robot: str = ""
    file: Annotated[str, Meta(max_length=1024)] = USUAL_FILE
    force: bool = False
    replace: bool = True


class OfPose(Struct, frozen=True, forbid_unknown_fields=True):
    """`number`: of the pose, from 1 on."""

    number: Annotated[int, Meta(ge=1, le=1000)]
    robot: str = ""


class HandEyeCommands:
    """Starts, watches and ends the calibration, and writes its file."""

    def __init__(self, robots: Robots, files: FilesFolder) -> None:
        self._jobs = Jobs(robots)
        self._files = files

    def commands(self) -> list[Command]:
        if not self._jobs.having(HAND_EYE):
            return []
        add = Command
        return [
            add(
                "hand_eye_status", "poses, residuals, coverage and result", self._look, OfJob,
                "viewer", large=True,
            ),
            add(
                "hand_eye_picture", "the picture of a pose (base64 of a JPEG file)", self._picture,
                OfPose, "viewer", large=True,
            ),
            add("hand_eye_text", "the calibration file as text", self._text, OfText, "viewer"),
            add("hand_eye_start", "move, capture, compute and validate", self._start, Start),
            self._of_job("hand_eye_capture", "one more pose where the arm is", "capture_here"),
            self._of_job("hand_eye_delete_last", "delete the last pose", "delete_last"),
            add("hand_eye_compute", "the camera from the poses so far", self._compute, Compute),
            self._of_job("hand_eye_validate", "check it where the arm is", "validate"),
            add("hand_eye_save", "write the calibration file", self._save, Save),
            self._of_job("hand_eye_cancel", "end the run; captured poses stay", "cancel"),
            self._of_job("hand_eye_reset", "remove all poses and the result", "reset"),
        ]  # fmt: skip

    def _of_job(self, name: str, doc: str, method: str) -> Command:
        act: Act = called(method)
        return Command(name, doc, lambda given: self._jobs.act(given.robot, HAND_EYE, act), OfJob)

    def _look(self, given: OfJob) -> Any:
        return self._jobs.look(given.robot, HAND_EYE)

    def _picture(self, given: OfPose) -> Any:
        found = self._jobs.part(given.robot, HAND_EYE)
        if isinstance(found, Refused):
            return found
        robot, job = found
        picture = job.picture(given.number)
        if isinstance(picture, Refused):
            return picture
        return {"robot": robot.name, "number": given.number, "jpeg": picture}

    def _start(self, given: Start) -> Any:
        def start(job: Any, now: int) -> Refused | None:
            refused: Refused | None = job.start(now, poses=given.poses, method=given.method or "")
            return refused

        return self._jobs.act(given.robot, HAND_EYE, start)

    def _compute(self, given: Compute) -> Any:
        def compute(job: Any, now: int) -> Refused | None:
            refused: Refused | None = job.compute(now, method=given.method or "")
            return refused

        return self._jobs.act(given.robot, HAND_EYE, compute)

    def _text(self, given: OfText) -> Any:
        found = self._jobs.part(given.robot, HAND_EYE)
        if isinstance(found, Refused):
            return found
        robot, job = found
        text = job.document(datetime.now(UTC).date().isoformat(), force=given.force)
        return text if isinstance(text, Refused) else {"robot": robot.name, "text": text}

    def _save(self, given: Save) -> Any:
        found = self._text(OfText(given.robot, given.force))
        if isinstance(found, Refused):
            return found
        try:
            if not given.replace and self._files.has(given.file):
                return Refused(f"{given.file} exists already", code=FILE_EXISTS)
            path = self._files.write(given.file, found["text"].encode(), _is_ours)
        except ConfigError as problem:
            return Refused(str(problem))
        return {**found, "file": str(path)}


def _is_ours(head: bytes) -> bool:
    """Another calibration file is replaced, files of other kinds are not."""
    return HEAD in head
