"""Finds the job of a robot, for the commands of that job."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import to_builtins

from understudy.errors import Refused
from understudy.operator.robots import Robot, Robots

Job = TypeVar("Job")


class Jobs(Generic[Job]):
    """The jobs of one kind in a cell. Acts on the job of a robot at the time of the cell; of a REAL
    robot that has such a job, at its own. ``noun``: the kind in words; ``name``: the end of the
    component's name, where a robot has several of the kind."""

    def __init__(self, robots: Robots, kind: type[Job], noun: str, *, name: str = "") -> None:
        self._robots = robots
        self._kind = kind
        self._noun = noun
        self._name = name

    def __bool__(self) -> bool:
        return bool(self.all())

    def all(self) -> dict[str, Job]:
        """The simulated jobs, by robot."""
        found = ((robot.name, self._of(robot)) for robot in self._robots)
        return {name: job for name, job in found if job is not None}

    def find(self, robot_name: str) -> tuple[Robot, Job] | Refused:
        """A robot and its job; without a name, of the only robot that has one."""
        able = self.all()
        if not robot_name and len(able) == 1:
            robot_name = next(iter(able))
        if not robot_name and able:
            return Refused(f"robot: several have {self._noun}: {', '.join(able)}")
        if not robot_name:
            return Refused(f"no robot of this cell has {self._noun}")
        robot = self._robots.find(robot_name)
        if isinstance(robot, Refused):
            return robot
        if robot.name not in able:
            there = f"robots of this cell that have it: {', '.join(able) or 'none'}"
            return Refused(f"{robot.name} has no {self._noun}; {there}")
        real = robot.real_job(self._kind)
        return robot, able[robot.name] if isinstance(real, Refused | None) else real

    def act(self, robot_name: str, action: Callable[[Job, int], Refused | None]) -> Any:
        """Acts on a job; its status, or why it was refused."""
        found = self.find(robot_name)
        if isinstance(found, Refused):
            return found
        robot, job = found
        if isinstance(real := robot.real_job(self._kind), Refused):
            return real
        refused = robot.side_of(job).time.act(lambda now: action(job, now))
        return refused if isinstance(refused, Refused) else _status(robot, job)

    def look(self, robot_name: str) -> Any:
        """The status of a job."""
        found = self.find(robot_name)
        return found if isinstance(found, Refused) else _status(*found)

    def _of(self, robot: Robot) -> Job | None:
        for name, each in self._robots.components[robot.name].items():
            if isinstance(each, self._kind) and name.endswith(self._name):
                return each
        return None


def _status(robot: Robot, job: Any) -> dict[str, Any]:
    status = robot.side_of(job).time.act(job.status)
    return {"robot": robot.name, **to_builtins(status)}
