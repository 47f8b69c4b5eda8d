"""`WeldingSequencer` of the design document, for scripts: a call that welds a whole seam."""

from collections.abc import Sequence
from typing import Any

from understudy.errors import ConfigError, Refused
from understudy.jobs.weld import sequencer
from understudy.jobs.weld.sequencer import STEEL, JobStatus, WeldSettings
from understudy.ports import ControllerStatus
from understudy.space.pose import Pose
from understudy.units import MM, NS_PER_SECOND, seconds

LOOK_S = seconds(sequencer.POLL)
"""Pause between two looks at the controller."""


class WeldingSequencer:
    """Welds seams on a `VirtualController` or a `GrblHalDriver`, with the same lines.

    ``WeldingSequencer(controller).weld(["G91 G1 Y50 F600", "G90"])``
    """

    def __init__(self, controller: Any, settings: WeldSettings = STEEL) -> None:
        for needed in ("send_gcode", "status", "input_result", "tcp", "wait"):
            if not callable(getattr(controller, needed, None)):
                allowed = "a VirtualController or a GrblHalDriver"
                raise ConfigError("no controller", value=type(controller).__name__, allowed=allowed)
        self._controller = controller
        self._job = sequencer.WeldingSequencer(_WithoutTime(controller), settings)
        self._now = 0

    def weld(self, seam: Sequence[str], timeout_s: float = 3600.0) -> JobStatus:
        """Welds along these moves from the present position; returns when the seam is over."""
        return self._welded(self._job.start(seam, self._now), timeout_s)

    def go_on(self, overlap_mm: float = 5.0, timeout_s: float = 3600.0) -> JobStatus:
        """Welds the rest of a seam whose arc was lost, from so far before that place."""
        return self._welded(self._job.go_on(overlap_mm * MM, self._now), timeout_s)

    def _welded(self, refused: Refused | None, timeout_s: float) -> JobStatus:
        deadline = self._now + round(timeout_s * NS_PER_SECOND)
        while refused is None and self._job.busy():
            if self._now > deadline:
                self._controller.stop()
                raise TimeoutError(f"the seam is not over after {timeout_s:g} s")
            self._controller.wait(LOOK_S)
            self._now += round(LOOK_S * NS_PER_SECOND)
            self._job.wake(self._now)
        return self._job.status(self._now)


class _WithoutTime:
    """A controller whose calls need no time, as a `sequencer.Controller`."""

    def __init__(self, controller: Any) -> None:
        self._controller = controller

    def send_gcode(self, text: str, now: int) -> Refused | None:
        refused: Refused | None = self._controller.send_gcode(text)
        return refused

    def input_result(self) -> float:
        return float(self._controller.input_result())

    def tcp(self, now: int) -> Pose:
        found: Pose = self._controller.tcp()
        return found

    def status(self, now: int) -> ControllerStatus:
        found: ControllerStatus = self._controller.status()
        return found
