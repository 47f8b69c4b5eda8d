"""What an operator of the cell can do with a mobile robot: stop it, its emergency stop, reset."""

from understudy.errors import Refused
from understudy.ports.operation import AxisReading, Condition, Frame, RobotModel
from understudy.robots.mobile.robot import MobileRobot
from understudy.space.pose import Pose
from understudy.space.transform import matrix


class MobileActions:
    """`OperatorActions` of a mobile robot; it is commanded over NATS."""

    frames: tuple[Frame, ...] = ()

    def __init__(self, robot: MobileRobot) -> None:
        self._robot = robot

    def condition(self, now: int) -> Condition:
        fault = self._robot.fault(now)
        error, code = (fault.reason, fault.code) if fault else ("", 0)
        return Condition(
            state=self._robot.state,
            moving=self._robot.moving(),
            error=error,
            code=code,
            waiting_tasks=self._robot.task_count() if fault else 0,
        )

    def axis_reading(self, now: int) -> AxisReading:
        return AxisReading((), (), (), Pose(*self._robot.view(now).tcp))

    def stop(self, now: int) -> None:
        self._robot.stop(now)

    def emergency_stop(self, now: int) -> Refused | None:
        return self._robot.inject("emergency_stop", {}, now)

    def reset(self, now: int) -> Refused | None:
        return self._robot.reset(now)


def model_of(robot: MobileRobot) -> RobotModel:
    """The foot is where the robot starts: pages show its name there."""
    x, y, yaw = robot.start
    base = matrix(Pose(x, y, 0.0, 0.0, 0.0, yaw))
    return RobotModel(base=tuple(base.reshape(-1).tolist()), vehicle=robot.body)
