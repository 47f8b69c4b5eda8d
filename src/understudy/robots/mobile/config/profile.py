"""`runtime.simulationProfile` of a robot_config.json: what a robot in MOCK mode meets, and when."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.errors import ConfigError

Metres = Annotated[float, Meta(ge=-1e6, le=1e6)]
Length = Annotated[float, Meta(gt=0, le=1e4)]
Radians = Annotated[float, Meta(ge=-1e4, le=1e4)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Percent = Annotated[float, Meta(ge=0, le=100)]
Probability = Annotated[float, Meta(ge=0, le=1)]
Identifier = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*\Z", max_length=64)]
Text = Annotated[str, Meta(max_length=256)]
Shape = Literal["circle", "box", "segment"]
Trigger = Literal["AFTER_SECONDS", "ON_COMMAND"]
CommandType = Literal[
    "MOVE_VELOCITY", "MOVE_TO_POSE", "STOP", "RESET_MOTOR", "SET_SPEED_LIMIT", "EXECUTE_ACTION"
]
DriveModel = Literal["differential", "ackermann", "mecanum"]
MOST_OBSTACLES = 10_000


class Camel(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A mapping of a robot_config.json: its keys are written in camelCase."""


class ProfilePose(Camel, frozen=True):
    """A place in the world, in metres and radians."""

    x: Metres = 0.0
    y: Metres = 0.0
    yaw: Radians = 0.0


class InitialState(Camel, frozen=True):
    """The state in which the robot starts."""

    pose: ProfilePose = ProfilePose()
    battery_percent: Percent = 100.0


class Obstacle(Camel, frozen=True):
    """Something that the lidar sees.

    A circle has `radiusMeters`; a box has `lengthMeters` and `widthMeters` and is turned by `yaw`;
    a segment goes from x, y to x2, y2.
    """

    id: Identifier
    x: Metres
    y: Metres
    shape: Shape = "circle"
    yaw: Radians = 0.0
    radius_meters: Length | None = None
    length_meters: Length | None = None
    width_meters: Length | None = None
    x2: Metres | None = None
    y2: Metres | None = None


SIZES: dict[Shape, dict[str, str]] = {
    "circle": {"radius_meters": "radiusMeters"},
    "box": {"length_meters": "lengthMeters", "width_meters": "widthMeters"},
    "segment": {"x2": "x2", "y2": "y2"},
}
"""The sizes that each shape needs, by field and by key; it has no others."""


class BarcodeMarker(Camel, frozen=True):
    """A code on the floor or on a wall, which the scanner reads when the robot is near."""

    code: Text
    x: Metres
    y: Metres
    yaw: Radians | None = None
    type: Text | None = None


class World(Camel, frozen=True):
    """What stands around the robot. `boundaries`: corners of closed walls, in order."""

    obstacles: Annotated[tuple[Obstacle, ...], Meta(max_length=MOST_OBSTACLES)] = ()
    barcode_markers: Annotated[tuple[BarcodeMarker, ...], Meta(max_length=MOST_OBSTACLES)] = ()
    boundaries: Annotated[tuple[tuple[tuple[Metres, Metres], ...], ...], Meta(max_length=1000)] = ()


class FaultRule(Camel, frozen=True):
    """A fault that comes after a time, or with a command. `target`: `drive` (all DRIVE motors),
    `motor:<id>`, `io:<id>` or `device:<id>`."""

    trigger: Trigger
    value: Seconds | CommandType
    target: Annotated[
        str, Meta(pattern=r"^(drive|(motor|io|device):[A-Za-z0-9_.:-]+)\Z", max_length=128)
    ]
    fault_code: Text = "SIM_FAULT"
    probability: Probability = 1.0


class FaultInjection(Camel, frozen=True):
    rules: Annotated[tuple[FaultRule, ...], Meta(max_length=1000)] = ()


class EstopChange(Camel, frozen=True):
    """The emergency stop button is pressed or released at a time."""

    at_seconds: Seconds
    pressed: bool


class InputChange(Camel, frozen=True):
    """An input is set at a time. null: a limit input follows its axis again, another one is off."""

    at_seconds: Seconds
    io_id: Identifier
    value: bool | None = None


class LimitSensorNoise(Camel, frozen=True):
    """Limit inputs that sometimes read the wrong value, with this probability at each tick."""

    enabled: bool = False
    probability: Probability = 0.01


class IoOverrides(Camel, frozen=True):
    estop_script: Annotated[tuple[EstopChange, ...], Meta(max_length=10_000)] = ()
    input_script: Annotated[tuple[InputChange, ...], Meta(max_length=10_000)] = ()
    limit_sensor_noise: LimitSensorNoise = LimitSensorNoise()


class ObstacleChange(Camel, frozen=True):
    """An obstacle appears (`spawn`), goes to another place in `overSeconds` (`move`), or is taken
    away (`remove`)."""

    at_seconds: Seconds
    action: Literal["spawn", "move", "remove"]
    obstacle: Obstacle | None = None
    id: Identifier | None = None
    x: Metres | None = None
    y: Metres | None = None
    over_seconds: Seconds = 0.0


class BarcodeScan(Camel, frozen=True):
    """The scanner reads a code at a time, wherever the robot is."""

    at_seconds: Seconds
    code: Text
    type: Text | None = None


class Scripts(Camel, frozen=True):
    """Timelines."""

    obstacles: Annotated[tuple[ObstacleChange, ...], Meta(max_length=MOST_OBSTACLES)] = ()
    barcodes: Annotated[tuple[BarcodeScan, ...], Meta(max_length=MOST_OBSTACLES)] = ()


class DriveResponse(Camel, frozen=True):
    """How the DRIVE motors of a simulated robot follow, as those of a real one do: each command
    acts later, the speed follows with a lag of first order, and readings differ from what is true
    by up to the noise."""

    delay_ms: Annotated[float, Meta(ge=0, le=500)] = 0.0
    lag_ms: Annotated[float, Meta(ge=0, le=500)] = 0.0
    speed_noise_mps: Annotated[float, Meta(ge=0, le=1)] = 0.0
    position_noise_mm: Annotated[float, Meta(ge=0, le=100)] = 0.0

    @property
    def acts(self) -> bool:
        return self != DriveResponse()


class SimulationProfile(Camel, frozen=True):
    """The whole profile; without one the world is empty and the battery full."""

    profile_name: Text = "default"
    random_seed: Annotated[int, Meta(ge=0, lt=1 << 62)] | None = None
    initial_state: InitialState = InitialState()
    world: World = World()
    fault_injection: FaultInjection = FaultInjection()
    io_overrides: IoOverrides = IoOverrides()
    scripts: Scripts = Scripts()
    drive_model: DriveModel = "differential"
    drive_response: DriveResponse = DriveResponse()


# ── what does not fit together ──────────────────────────────────────────────────────────────────


def check_profile(profile: SimulationProfile) -> None:
    """Raises a `ConfigError` for values that do not fit together."""
    known = _checked_obstacles(profile.world.obstacles, "world.obstacles")
    for number, rule in enumerate(profile.fault_injection.rules):
        _check_rule(rule, f"faultInjection.rules.{number}")
    for number, wall in enumerate(profile.world.boundaries):
        if len(wall) < 2:
            raise ConfigError(
                "a wall needs two corners or more", key=f"world.boundaries.{number}", value=wall
            )
    in_order("ioOverrides.estopScript", [c.at_seconds for c in profile.io_overrides.estop_script])
    in_order("ioOverrides.inputScript", [c.at_seconds for c in profile.io_overrides.input_script])
    in_order("scripts.barcodes", [scan.at_seconds for scan in profile.scripts.barcodes])
    in_order("scripts.obstacles", [change.at_seconds for change in profile.scripts.obstacles])
    for number, change in enumerate(profile.scripts.obstacles):
        _check_change(change, known, f"scripts.obstacles.{number}")


def in_order(key: str, times: Sequence[float]) -> None:
    """The entries of a timeline are written in the order of their times."""
    for number, (before, after) in enumerate(pairwise(times), 1):
        if after < before:
            raise ConfigError(
                "earlier than the entry before it",
                key=f"{key}.{number}.atSeconds",
                value=after,
                allowed=f"≥ {before:g}",
            )


def _checked_obstacles(obstacles: Sequence[Obstacle], key: str) -> set[str]:
    known: set[str] = set()
    for number, obstacle in enumerate(obstacles):
        if obstacle.id in known:
            raise ConfigError(
                "two obstacles have this id", key=f"{key}.{number}.id", value=obstacle.id
            )
        check_obstacle(obstacle, f"{key}.{number}")
        known.add(obstacle.id)
    return known


def check_obstacle(obstacle: Obstacle, key: str) -> None:
    """Each shape has its own sizes, all of them and no others."""
    for shape, sizes in SIZES.items():
        for field, name in sizes.items():
            given = getattr(obstacle, field) is not None
            if given != (shape == obstacle.shape):
                problem = "a size of another shape" if given else "this key is missing"
                needed = ", ".join(SIZES[obstacle.shape].values())
                raise ConfigError(
                    problem, key=f"{key}.{name}", allowed=f"a {obstacle.shape} has {needed}"
                )


def _check_rule(rule: FaultRule, key: str) -> None:
    by_time = isinstance(rule.value, float)
    if by_time != (rule.trigger == "AFTER_SECONDS"):
        allowed = "a number of seconds" if rule.trigger == "AFTER_SECONDS" else "a command type"
        raise ConfigError(
            "this does not fit the trigger", key=f"{key}.value", value=rule.value, allowed=allowed
        )


def _check_change(change: ObstacleChange, known: set[str], key: str) -> None:
    """Follows the obstacles along the timeline; ``known``: those that are there."""
    if change.action == "spawn":
        if change.obstacle is None:
            raise ConfigError("this key is missing", key=f"{key}.obstacle")
        if change.obstacle.id in known:
            raise ConfigError(
                "this obstacle is already there", key=f"{key}.obstacle.id", value=change.obstacle.id
            )
        check_obstacle(change.obstacle, f"{key}.obstacle")
        known.add(change.obstacle.id)
        return
    if change.id not in known:
        there = ", ".join(sorted(known)) or "none"
        raise ConfigError(
            "no such obstacle at this time", key=f"{key}.id", value=change.id, allowed=there
        )
    if change.action == "move" and (change.x is None or change.y is None):
        raise ConfigError("this key is missing", key=f"{key}.{'x' if change.x is None else 'y'}")
    if change.action == "remove":
        known.discard(change.id or "")
