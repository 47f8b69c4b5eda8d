"""Stretches of constant jerk, and ruckig's way from any state to where it should be."""

from typing import NamedTuple

from ruckig import ControlInterface, InputParameter, Result, Ruckig, RuckigError, Trajectory


class Phase(NamedTuple):
    """How long, and from which state."""

    seconds: float
    s: float
    v: float
    a: float
    j: float

    def moved(self, x: float) -> float:
        """Where it is after x seconds."""
        return self.s + x * (self.v + x * (0.5 * self.a + x * self.j / 6.0))

    @property
    def end(self) -> float:
        return self.moved(self.seconds)


class Bounds(NamedTuple):
    """The limits of one motion."""

    speed: float
    a: float
    j: float


class State(NamedTuple):
    s: float
    v: float
    a: float


def fastest_way(
    state: State, bounds: Bounds, *, speed: float, position: float | None = None
) -> list[Phase] | None:
    """To a speed without acceleration, at a position or wherever; None if there is no way."""
    task, found = InputParameter(1), Trajectory(1)
    task.current_position, task.current_velocity = [state.s], [state.v]
    task.current_acceleration = [state.a]
    task.target_velocity, task.target_acceleration = [speed], [0.0]
    task.max_velocity = [max(bounds.speed, abs(speed), 1e-12)]
    task.max_acceleration, task.max_jerk = [max(bounds.a, abs(state.a))], [bounds.j]
    if position is None:
        task.control_interface = ControlInterface.Velocity
    else:
        task.target_position = [position]
    try:
        result = Ruckig(1).calculate(task, found)
    except RuckigError:
        return None
    if result not in (Result.Working, Result.Finished):
        return None
    profile = found.profiles[0][0]
    return [
        Phase(*row)
        for part in (profile.brake, profile)
        for row in zip(part.t, part.p, part.v, part.a, part.j, strict=False)
        if row[0] > 0.0
    ]
