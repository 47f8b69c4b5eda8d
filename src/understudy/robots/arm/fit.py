"""What a recording of an arm behind a grblHAL wire shows: limits of its joints, delays.

The joints are X Y Z A B C of the wire, in degrees. The program that was sent is planned again with
a jerk-limited profile. If the arm has none, the jerk that fits is so high that it is not visible;
then the program is planned with a trapezoidal profile.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from understudy.config import CellConfig
from understudy.motion.path import Limits
from understudy.motion.profile import Profile
from understudy.offline.fit import Keys, Parameter, Recorded, events_of
from understudy.robots.arm import Config
from understudy.robots.arm.mover import ArmMover
from understudy.robots.arm.offline import motion_setup
from understudy.robots.grblhal.fit import (
    MachineMotions,
    axis_moves,
    delays_of,
    notes_of,
    output_delays,
    read_conversation,
    top_speeds,
)
from understudy.robots.grblhal.numbers import SettingNumber
from understudy.units import DEG, MINUTE
from understudy.wire.chat import Chat

VELOCITY, ACCELERATION, JERK = LISTS = (
    "max_velocity_deg_s",
    "max_acceleration_deg_s2",
    "max_jerk_deg_s3",
)
MEANINGS = {
    VELOCITY: ("maximum speed", "deg/s"),
    ACCELERATION: ("acceleration", "deg/s2"),
    JERK: ("jerk", "deg/s3"),
}
DEVIATION = "junction_deviation_deg"
HIGHEST_JERK = 300.0
"""Of the search, over the acceleration: full acceleration within 3 ms looks like a step."""
STEPS_ONLY = (
    "profile: trapezoid of the cell file says that the arm has no jerk: it is not estimated"
)


def recorded_arm(config: CellConfig, robot: str, chat: Chat) -> Recorded:
    """What a recording of an arm shows of its limits and delays."""
    own: Config = config.robots[robot].config
    if own.profile == "trapezoid":
        return _recorded(config, robot, chat, jerky=False)
    simpler = _recorded(config, robot, chat, jerky=False)
    return replace(_recorded(config, robot, chat, jerky=True), simpler=simpler)


def _recorded(config: CellConfig, robot: str, chat: Chat, *, jerky: bool) -> Recorded:
    own: Config = config.robots[robot].config
    endpoint, events = events_of(chat, config, robot, "grblhal")
    talk = read_conversation(events)
    setup = motion_setup(config, robot, "grblhal")
    mover = setup.mover
    assert isinstance(mover, ArmMover), "an arm has an ArmMover"
    stated = _limits(mover)
    known: dict[Keys, float] = {}
    for axis in range(mover.chain.dof):
        rate = talk.settings.get(int(SettingNumber.MAXIMUM_RATE) + axis)
        if rate is not None:
            known[VELOCITY, axis] = stated[VELOCITY][axis] = rate / MINUTE
        step = talk.settings.get(int(SettingNumber.ACCELERATION) + axis)
        if step is not None:
            known[ACCELERATION, axis] = stated[ACCELERATION][axis] = step
    place: Keys = ("robots", robot)
    every = _parameters(stated, top_speeds(talk, mover.chain.dof), mover.deviation / DEG, place)
    own_keys = {p: p.keys[2:] for p in every}
    moving = [axis_moves(talk, axis) for axis in range(mover.chain.dof)]
    visible = [
        p
        for p, keys in own_keys.items()
        if keys not in known
        and (jerky or keys[0] != JERK)
        and (any(moving) if keys == (DEVIATION,) else moving[int(keys[-1])])
    ]

    def mover_of(values: Sequence[float]) -> ArmMover:
        found = {name: column.copy() for name, column in stated.items()}
        deviation = mover.deviation
        for parameter, value in zip(visible, values, strict=True):
            name, *axis = own_keys[parameter]
            if axis:
                found[str(name)][int(axis[0])] = value
            else:
                deviation = value * DEG
        velocity, acceleration, jerk = (found[name] * mover.chain.units for name in LISTS)
        limits = Limits.of(velocity, acceleration, jerk if jerky else np.inf)
        return replace(mover, limits=limits, deviation=deviation)

    profile: Profile = "jerk_limited" if jerky else "trapezoid"
    start = mover_of([p.start for p in visible])
    setup = replace(setup, mover=start, profile=profile, mount=None, dynamics=None)
    motions = MachineMotions(
        talk, visible, setup, mover_of, mover.chain.dof, units=mover.chain.units
    )
    measured, rules = delays_of(talk, endpoint, ())
    return Recorded(
        motions,
        tuple(measured),
        known=tuple((p, known[keys]) for p, keys in own_keys.items() if keys in known),
        absent=tuple(p for p, keys in own_keys.items() if p not in visible and keys not in known),
        rules=rules,
        lists={(*place, name): json.dumps(stated[name].round(6).tolist()) for name in LISTS},
        doubtful=frozenset((*place, JERK, axis) for axis in range(mover.chain.dof)),
        notes=(
            *notes_of(talk, motions),
            *((STEPS_ONLY,) if own.profile == "trapezoid" else ()),
        ),
        after_fit=lambda begins, ends: output_delays(
            talk, motions, begins, ends, own.io, (*place, "io", "links")
        ),
    )


def _limits(mover: ArmMover) -> dict[str, np.ndarray]:
    """The limits of the joints, in degrees; the jerk of the model where none acts."""
    limits, units = mover.limits, mover.chain.units
    jerk = np.where(np.isfinite(limits.jerk), limits.jerk, mover.chain.jerk)
    return {
        VELOCITY: np.asarray(limits.velocity / units),
        ACCELERATION: np.asarray(limits.acceleration / units),
        JERK: np.asarray(jerk / units),
    }


def _parameters(
    stated: dict[str, np.ndarray], fastest: np.ndarray, deviation: float, place: Keys
) -> list[Parameter]:
    """Limits of each joint, and the deviation at corners."""
    found = []
    for name, (meaning, unit) in MEANINGS.items():
        for axis, value in enumerate(stated[name].tolist()):
            most = 1e7
            if name == VELOCITY:
                value = float(fastest[axis]) or value
            elif name == JERK:
                most = HIGHEST_JERK * float(stated[ACCELERATION][axis])
            found.append(
                Parameter(
                    (*place, name, axis),
                    f"{meaning} of joint {axis + 1}",
                    unit,
                    value,
                    1e-2,
                    most,
                    scaled=name != VELOCITY,
                    limit=name == VELOCITY,
                    order=LISTS.index(name) + 1,
                )
            )
    start = max(deviation, 1e-4)
    found.append(Parameter((*place, DEVIATION), "junction deviation", "deg", start, 1e-5, 10.0))
    return found
