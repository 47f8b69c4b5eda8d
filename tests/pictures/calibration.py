"""Pictures of the calibration page."""

from tests.browsers import RunningCell, Screen
from tests.pictures import Picture, advance_until

CELL = "calibration"
POSES = 15


def running(screen: Screen, cell: RunningCell) -> None:
    """The automatic run has captured some poses."""
    cell.ask("enable", robot="g60")
    cell.ask("hand_eye_start", poses=POSES)

    def six() -> bool:
        return bool(cell.ask("hand_eye_status")["captured"] >= 6)

    advance_until(screen, cell, six, step_s=0.5, what="six poses")
    screen.page.wait_for_timeout(2500)


def done(screen: Screen, cell: RunningCell) -> None:
    """The result, and where to save it."""

    def rests() -> bool:
        return not cell.ask("hand_eye_status")["running"]

    advance_until(screen, cell, rests, step_s=1.0, what="the result")
    screen.until(lambda: screen.page.locator(".u-calib-bar").count() == POSES, "the plot")
    screen.at("calib-result").scroll_into_view_if_needed()
    screen.page.wait_for_timeout(2500)


def too_dark(screen: Screen, cell: RunningCell) -> None:
    """The settings of the camera; the target is not found."""
    screen.press("tab-camera")
    cell.ask("set_camera_exposure", device="g60.camera", exposure_ms=0.5)
    cell.ask("advance", seconds=1.0)
    screen.reads("detected", "✗")
    screen.page.wait_for_timeout(1500)


PICTURES = [
    Picture("calibration_page", CELL, "/calibration", running),
    Picture("calibration_result", CELL, "/calibration", done),
    Picture("calibration_camera", CELL, "/calibration", too_dark),
]
