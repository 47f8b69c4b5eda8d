"""The seed of a robot's random numbers."""

from understudy.robots.mobile.config.robot_file import RobotFile


def seed_of(robot: RobotFile, option: int | None, cell: int) -> int:
    """The seed that counts: ``option`` (`--seed`), else `randomSeed`, else that of the cell.

    Robots with the same seed draw other numbers: `robotId` is part of the name of every draw.
    """
    profile = robot.runtime.simulation_profile
    own = profile.random_seed if profile else None
    return next(seed for seed in (option, own, cell) if seed is not None)
