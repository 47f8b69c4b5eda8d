"""pickplace.yaml: the pick & place cycle, its gripper, pallet, vision, safety and modes.

The same sections can be keys of a robot in a cell file; those win over the file.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, structs

from understudy.errors import located_at
from understudy.jobs.hand_eye.config import HandEyeConfig
from understudy.jobs.modes.config import ModesConfig
from understudy.jobs.pick_place.config import CycleConfig, PalletConfig, SafetyConfig
from understudy.ports.vision import VisionSource
from understudy.vision.config import VisionConfig
from understudy.vision.detector_config import FindFile


class PickPlaceSections(Struct, frozen=True, forbid_unknown_fields=True):
    """The sections that a robot has; None: the key is not there."""

    pickplace: CycleConfig | None = None
    pallet: PalletConfig | None = None
    vision: VisionConfig | None = None
    safety: SafetyConfig | None = None
    modes: ModesConfig | None = None
    hand_eye: HandEyeConfig | None = None

    def sees(self) -> VisionConfig | None:
        """The section `vision` of a job that looks for its parts, or calibrates its camera."""
        looks = self.pickplace is not None and self.pickplace.source == "vision"
        if not looks and self.hand_eye is None:
            return None
        return self.vision or VisionConfig()

    def check_seeing(self, given: Mapping[str, Any], find: FindFile = lambda name: None) -> None:
        """Raises ConfigError for a camera, detectors or a target with which nothing can be seen.
        ``given``: the sections as the file has them; ``find``: finds the files of detectors."""
        vision, calibrates = self.vision or VisionConfig(), self.hand_eye is not None
        with located_at("vision"):
            vision.check_in_file(given.get("vision") or {}, find, calibrates=calibrates)
        if self.hand_eye is not None:
            with located_at("hand_eye.target"):
                self.hand_eye.target.check()

    def with_vision(self, source: VisionSource) -> "PickPlaceSections":
        vision = self.sees()
        if vision is None:
            return self
        return structs.replace(self, vision=structs.replace(vision, source=source))


class PickPlaceFile(PickPlaceSections, frozen=True, forbid_unknown_fields=True):
    """The keys of pickplace.yaml; those of the gripper are checked by the device."""

    gripper: dict[str, Any] | None = None


SECTIONS = PickPlaceSections.__struct_fields__
DEVICE_SECTIONS = ("gripper",)
"""Sections of pickplace.yaml that are devices of the robot."""


def over(own: Mapping[str, Any], file: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a robot, with the sections of pickplace.yaml below them."""
    merged = dict(own)
    for name, section in file.items():
        mine = {} if own.get(name) is None else own[name]
        merged[name] = {**(section or {}), **mine} if isinstance(mine, dict) else mine
    return merged
