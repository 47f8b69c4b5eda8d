"""Hand-eye calibration by the five methods of OpenCV."""

import numpy as np

from understudy.errors import Refused
from understudy.sight.hand_eye import Views, degenerate
from understudy.space.transform import Array, is_rigid

METHODS = ("tsai", "park", "horaud", "andreff", "daniilidis")


def by_opencv(views: Views, method: str) -> Array | Refused:
    """X by one of METHODS; ModuleNotFoundError without the extra `vision`."""
    if refused := degenerate(views):
        return refused
    import cv2

    out = np.eye(4)
    try:
        out[:3, :3], out[:3, 3:] = cv2.calibrateHandEye(
            list(views.hand[:, :3, :3]),
            list(views.hand[:, :3, 3]),
            list(views.target[:, :3, :3]),
            list(views.target[:, :3, 3]),
            method=getattr(cv2, f"CALIB_HAND_EYE_{method.upper()}"),
        )
    except cv2.error:  # it does not converge for poses that contradict each other
        out[:] = np.nan
    if not is_rigid(out):
        return Refused(f"the method {method} finds no camera for these poses")
    return out
