"""The wheels of a robot, from its file: the same for its runtime and for its simulated drive."""

from understudy.config.mobile.robot_file import RobotFile
from understudy.motion.wheels import WheelMotor, WheelSet, wheel_set
from understudy.units import MM


def wheels_of(file: RobotFile) -> WheelSet:
    """Without trackWidthMm or wheelBaseMm the width and the length of the body count."""
    profile, size = file.runtime.simulation_profile, file.dimensions
    names = [WheelMotor(m.function_key, m.motor_id) for m in file.motors if m.role == "DRIVE"]
    return wheel_set(
        profile.drive_model if profile is not None else "differential",
        names,
        track=(size.track_width_mm or size.width_mm) * MM,
        base=(size.wheel_base_mm or size.length_mm) * MM,
    )
