"""Faults of vision, by the rules of the scenario: the same for the simulated parts themselves and
for a vision process."""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.ports import ActiveFault, FaultSource
from understudy.ports.vision import DetectedObject
from understudy.space.pose import ORIGIN
from understudy.space.transform import matrix, pose
from understudy.units import DEG, MM

WRONG_CLASS = "unknown"
"""What a fault reports in place of the class."""


def refuse_injection(fault: str) -> Refused:
    return Refused(f"{fault} cannot be injected: it acts only by a scenario rule")


class VisionFaults:
    """The `VISION_FAULTS` of one camera; ``place``: the name of its part in the cell."""

    def __init__(self, place: str, fault_source: FaultSource) -> None:
        self._place = place
        self._fault_source = fault_source

    def silent(self, now: int) -> bool:
        """Whether the request of this moment is not answered."""
        return self._fault("vision_silent", now) is not None

    def disturb(self, seen: Sequence[DetectedObject], now: int) -> list[DetectedObject]:
        """The objects after the faults of the scenario. Every fault is drawn for every picture, so
        that no rule changes the draws of another."""
        missing = self._fault("vision_no_object", now)
        low = self._fault("vision_low_confidence", now)
        noise = self._fault("vision_noise", now)
        wrong = self._fault("vision_wrong_class", now)
        if missing is not None:
            return []
        if low is not None:
            seen = [replace(o, confidence=low.parameters["confidence"]) for o in seen]
        if noise is not None:
            seen = self._noisy(seen, noise)
        if wrong is not None:
            seen = [replace(o, class_name=WRONG_CLASS) for o in seen]
        return list(seen)

    def _noisy(self, seen: Sequence[DetectedObject], noise: ActiveFault) -> list[DetectedObject]:
        """The poses, shifted along and turned about the axes of the camera."""
        deviations = np.array(self._fault_source.deviations(noise, 6 * len(seen))).reshape(-1, 6)
        scale = [noise.parameters["mm"] * MM] * 3 + [noise.parameters["deg"] * DEG] * 3
        found = []
        for each, by in zip(seen, deviations * scale, strict=True):
            x, y, z, *turn = by.tolist()
            place = matrix(each.pose)
            place[:3, :3] = (
                matrix(ORIGIN._replace(rx=turn[0], ry=turn[1], rz=turn[2]))[:3, :3]
                @ (place[:3, :3])
            )
            place[:3, 3] += (x, y, z)
            found.append(replace(each, pose=pose(place)))
        return found

    def _fault(self, fault: str, now: int) -> ActiveFault | None:
        return self._fault_source.draw_fault(fault, self._place, now)
