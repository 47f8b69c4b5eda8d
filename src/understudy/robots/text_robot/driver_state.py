"""What is known of a real text robot: what it told last, and why that may no longer hold."""

from understudy.errors import Refused
from understudy.ports import PoseReading
from understudy.robots.text_robot.driver_codec import LOST_ERROR, Condition
from understudy.space.pose import Pose

NOWHERE = Pose(*(float("nan"),) * 6)
NOT_TOLD = Condition("Unknown", float("nan"), 0, 0)
NOT_CALLED = Refused("Connection lost: the robot was not reached yet", LOST_ERROR)
NOT_ASKED = Refused("Robot state unknown: it has not answered GET_STATUS yet", LOST_ERROR)


class Picture:
    """While there is ``trouble``, the state is unknown. An error of the driver's own making stands
    until reset, as the robot's own errors do."""

    def __init__(self) -> None:
        self.trouble: Refused | None = NOT_CALLED
        self.told_at: int | None = None
        self.own_error = 0
        self._pose = NOWHERE
        self._condition = NOT_TOLD

    @property
    def locked(self) -> bool:
        """In emergency stop, by the robot's word."""
        return self._condition.state == "EmergencyStopped"

    def place(self, pose: Pose) -> None:
        self._pose = pose

    def describe(self, condition: Condition, now: int) -> None:
        self._condition = condition
        self.told_at = now
        self.trouble = None

    def lock(self) -> None:
        self._condition = self._condition._replace(state="EmergencyStopped")

    def unlock(self) -> None:
        state = "Idle" if self.locked else self._condition.state
        self._condition = self._condition._replace(state=state, error_code=0)

    def reading(self) -> PoseReading:
        """NaN where the robot was never asked."""
        told, trouble = self._condition, self.trouble
        return PoseReading(
            pose=self._pose,
            state="Unknown" if trouble else told.state,
            temperature_c=told.temperature_c,
            error_code=trouble.code if trouble else self.own_error or told.error_code,
            load_percent=told.load_percent,
        )
