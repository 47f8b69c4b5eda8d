"""What a hand-eye calibration works with: an arm, and a vision process that finds the target."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from understudy.errors import Refused
from understudy.ports import Component, Ticket
from understudy.ports.pick_place import ArmMotion, JobArm
from understudy.sight.camera import CameraModel

Reply = Callable[[Ticket, dict[str, Any] | Refused, int], None]


@runtime_checkable
class CalibrationVision(Component, Protocol):
    """The vision process, as far as a calibration needs it. `model`: the camera as the cell file
    has it, from which the poses are planned."""

    model: CameraModel

    def start_calibration(self, params: Mapping[str, Any], now: int) -> Ticket | Refused: ...

    def capture_calibration_image(self, now: int, picture_px: int = 0) -> Ticket | Refused: ...

    def on_reply(self, listener: Reply) -> None: ...

    def is_connected(self) -> bool: ...

    def cancel(self, now: int) -> None: ...


@dataclass(frozen=True)
class Equipment:
    """`arm`: its moves; `job_arm`: reach, contacts and joints. `tool`: its number, None: the
    mounted one."""

    arm: ArmMotion
    job_arm: JobArm
    vision: CalibrationVision
    tool: int | None = None
