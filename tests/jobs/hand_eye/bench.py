"""The shipped cell `calibration` on virtual time, with its camera and its vision process."""

from typing import Any

import msgspec

from understudy.app.build import build_cell
from understudy.config import CellConfig, load_config
from understudy.jobs.hand_eye.job import HandEyeJob
from understudy.ports import state as snapshots
from understudy.space.pose import pose_of
from understudy.space.transform import Array, matrix
from understudy.units import nanoseconds
from understudy.wire.exchange import InProcessCell

TRUE_CAMERA = matrix(pose_of((62.4, -3.1, 41.7, 1.2, -0.8, 91.5)))


class HandEyeBench:
    def __init__(self, config: CellConfig | None = None, robot: str = "g60") -> None:
        self.cell = build_cell(config or load_config("calibration"))
        self.engine = InProcessCell(self.cell)
        parts: dict[str, Any] = dict(self.cell.components)
        self.arm, self.camera = parts[robot], parts[f"{robot}.camera"]
        self.job: HandEyeJob = parts[f"{robot}.hand_eye"]
        self.arm.connect(self.now)
        self.arm.enable(self.now)

    @property
    def now(self) -> int:
        return self.cell.now

    def run(self, most_s: float = 120.0) -> None:
        """Until the job rests."""
        end = self.now + nanoseconds(most_s)
        self.engine.run_while(lambda: self.job.is_running() and self.now < end)
        assert not self.job.is_running()

    def run_until(self, poses: int) -> None:
        """Until so many poses are captured."""
        self.engine.run_while(
            lambda: self.job.is_running() and self.job.status(self.now).captured < poses
        )

    @property
    def state(self) -> str:
        return self.job.status(self.now).state

    @property
    def true_camera(self) -> Array:
        return TRUE_CAMERA

    def snapshot(self) -> bytes:
        return msgspec.json.encode(snapshots.saved(self.job))
