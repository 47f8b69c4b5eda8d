"""robot_config.json: one mobile robot, REAL or MOCK, with the keys and units of its own document.

Dimensions are in millimetres; a limit of a motor has its own unit, and `Limits.si` converts it.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct, field

from understudy.config.document import parse
from understudy.config.typed import read
from understudy.errors import ConfigError, unknown
from understudy.robots.mobile.config.profile import (
    Camel,
    CommandType,
    Identifier,
    Length,
    SimulationProfile,
    Text,
    check_profile,
)
from understudy.units import DEG, MM

RuntimeMode = Literal["REAL", "MOCK"]
MotorRole = Literal["DRIVE", "FUNCTIONAL"]
DriverType = Literal["PLC", "CANOPEN", "SERIAL", "MOCK"]
Module = Literal["RobotCore", "Settings", "TaskComm", "TrafficComm", "RouteComm"]
MODULES: tuple[Module, ...] = ("RobotCore", "Settings", "TaskComm", "TrafficComm", "RouteComm")
Millimetres = Annotated[float, Meta(gt=0, le=1e6)]
Hertz = Annotated[float, Meta(ge=0, le=100)]
Timeout = Annotated[float, Meta(gt=0, le=3600)]
RobotId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*\Z", max_length=64)]
"""One word of a NATS subject: no dot, blank, `*` or `>`."""
Subject = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]+\Z", max_length=64)]
Unit = Literal[
    "m", "mm", "rad", "deg", "m/s", "mm/s", "rad/s", "deg/s", "m/s2", "mm/s2", "rad/s2", "deg/s2"
]
SCALES = {"m": 1.0, "mm": MM, "rad": 1.0, "deg": DEG}
"""The length or angle in front of a unit, in metres or radians."""
TIMES = {
    "maxSpeed": "/s",
    "maxAcceleration": "/s2",
    "maxDeceleration": "/s2",
    "positionMin": "",
    "positionMax": "",
}
"""What stands behind the length or angle in the unit of each limit."""
OWN_KEYS = {"identity", "schemaVersion", "motors", "dimensions"}
"""Keys by which a robot_config.json is known among other files."""
SAME_KIND = {"mm": ("m", "mm"), "m": ("m", "mm"), "deg": ("deg", "rad"), "rad": ("deg", "rad")}
"""Units that measure the same."""


class Quantity(Camel, frozen=True):
    """A value with its unit."""

    unit: Unit
    value: Annotated[float, Meta(ge=-1e6, le=1e6)]

    @property
    def si(self) -> float:
        return self.value * SCALES[self.unit.partition("/")[0]]


class Identity(Camel, frozen=True):
    """Who the robot is; `robotId` is part of every subject."""

    robot_id: RobotId
    robot_code: Text
    name: Text
    vendor: Text | None = None
    model: Text | None = None
    firmware_version: Text | None = None


class StartupPolicy(Camel, frozen=True):
    """LOCAL: the settings of this file count at start. BACKEND: no motion until the first
    settings.desired has come."""

    settings_bootstrap_mode: Literal["LOCAL", "BACKEND"] = "LOCAL"


class HealthPolicy(Camel, frozen=True):
    """When the robot may drive. `requireNatsForMotion`: without NATS it is OFFLINE and stands."""

    allow_drive_in_warning: bool = True
    require_nats_for_motion: bool = True


class Runtime(Camel, frozen=True):
    mode: RuntimeMode
    tick_hz: Annotated[int, Meta(ge=50, le=200)] = 50
    startup_policy: StartupPolicy = StartupPolicy()
    health_policy: HealthPolicy = HealthPolicy()
    simulation_profile: SimulationProfile | None = None


class NatsTimeouts(Camel, frozen=True):
    connect_seconds: Timeout = 5.0
    request_seconds: Timeout = 2.0
    reconnect_wait_seconds: Timeout = 2.0


class JetStream(Camel, frozen=True):
    stream_in: Subject = "ROBOT_IN"
    stream_out: Subject = "ROBOT_OUT"


class NatsTls(Camel, frozen=True):
    """Files of certificates; `caFile` alone checks the server only."""

    ca_file: Text | None = None
    cert_file: Text | None = None
    key_file: Text | None = None


class Nats(Camel, frozen=True):
    """The servers and how to log in: credentials (JWT and nkey), an nkey seed, a token or TLS."""

    servers: Annotated[tuple[Text, ...], Meta(max_length=100)] = ()
    creds_file_path: Text | None = None
    nkey_seed_file_path: Text | None = None
    token: Text | None = None
    tls: NatsTls | None = None
    timeouts: NatsTimeouts = NatsTimeouts()
    jet_stream: JetStream = JetStream()


class Dimensions(Camel, frozen=True):
    length_mm: Millimetres
    width_mm: Millimetres
    height_mm: Millimetres
    wheel_base_mm: Millimetres | None = None
    track_width_mm: Millimetres | None = None
    payload_max_kg: Annotated[float, Meta(ge=0, le=1e6)] | None = None


class Capabilities(Camel, frozen=True):
    """Without `supportedCommands` or `supportedModules` all of them are supported."""

    flags: dict[Text, bool] = field(default_factory=dict)
    supported_commands: tuple[CommandType, ...] | None = None
    supported_modules: tuple[Module, ...] | None = None


class Driver(Camel, frozen=True):
    """What a motor, a point or a sensor is connected to. `config` is read in REAL mode only.
    `latencyMs`: of a DRIVE motor, the time from a command of a speed to the reading that shows it;
    without it the robot measures it."""

    type: DriverType
    config: dict[str, Any] = field(default_factory=dict)
    latency_ms: Annotated[float, Meta(ge=0, le=600)] | None = None


class SiLimits(Struct, frozen=True):
    """Limits of a motor in metres or radians, and seconds."""

    max_speed: float
    max_acceleration: float
    max_deceleration: float
    lowest: float | None
    highest: float | None


class Limits(Camel, frozen=True):
    max_speed: Quantity
    max_acceleration: Quantity
    max_deceleration: Quantity
    position_min: Quantity | None = None
    position_max: Quantity | None = None

    @property
    def si(self) -> SiLimits:
        low, high = self.position_min, self.position_max
        return SiLimits(
            self.max_speed.si,
            self.max_acceleration.si,
            self.max_deceleration.si,
            low.si if low else None,
            high.si if high else None,
        )


class ResetPolicy(Camel, frozen=True):
    """Whether RESET_MOTOR clears a fault, and how long after the fault."""

    allow_reset: bool = True
    cooldown_seconds: Annotated[float, Meta(ge=0, le=3600)] = 1.0


class Motor(Camel, frozen=True):
    """An axis: of the drive, or of something on the robot. `functionKey` says what it is for."""

    motor_id: Identifier
    role: MotorRole
    function_key: Text
    driver: Driver
    limits: Limits
    reset_policy: ResetPolicy = ResetPolicy()


class DigitalInput(Camel, frozen=True):
    """LIMIT_MIN and LIMIT_MAX belong to a motor. `inverted`: the input is on when the signal is
    off."""

    io_id: Identifier
    role: Literal["ESTOP", "LIMIT_MIN", "LIMIT_MAX", "TRAFFIC_HOLD", "GENERAL"] = "GENERAL"
    motor_id: Identifier | None = None
    inverted: bool = False
    driver: Driver | None = None


class DigitalOutput(Camel, frozen=True):
    io_id: Identifier
    role: Literal["MOTOR_ENABLE", "GENERAL"] = "GENERAL"
    inverted: bool = False
    driver: Driver | None = None


class LidarConfig(Camel, frozen=True):
    """Rays are spread evenly over the field of view, from right to left."""

    rays: Annotated[int, Meta(ge=1, le=4096)] = 36
    field_of_view_deg: Annotated[float, Meta(gt=0, le=360)] = 360.0
    max_range_meters: Length = 10.0
    scan_hz: Annotated[float, Meta(gt=0, le=200)] = 10.0


class ScannerConfig(Camel, frozen=True):
    """A marker is read within this distance, once each time the robot comes there.
    `correctsPose`: a marker in the world's list corrects the pose that odometry has estimated."""

    range_meters: Length = 0.15
    corrects_pose: bool = False
    odometry_drift_percent: Annotated[float, Meta(ge=0, le=50)] = 0.0


class BatteryConfig(Camel, frozen=True):
    """Reports the charge of a REAL robot's battery; a robot in MOCK mode needs no sensor for it."""


class Mount(Camel, frozen=True):
    """A place on the robot, seen from its centre."""

    x_mm: Annotated[float, Meta(ge=-1e5, le=1e5)] = 0.0
    y_mm: Annotated[float, Meta(ge=-1e5, le=1e5)] = 0.0
    yaw_deg: Annotated[float, Meta(ge=-360, le=360)] = 0.0


DeviceType = Literal["LIDAR", "BARCODE_SCANNER", "BATTERY"]
DEVICE_CONFIGS: dict[DeviceType, type[Camel]] = {
    "LIDAR": LidarConfig,
    "BARCODE_SCANNER": ScannerConfig,
    "BATTERY": BatteryConfig,
}


class Device(Camel, frozen=True):
    """A sensor. `config`: the keys of its type."""

    device_id: Identifier
    type: DeviceType
    mount: Mount = Mount()
    config: dict[str, Any] = field(default_factory=dict)
    driver: Driver | None = None

    @property
    def settings(self) -> Camel:
        return read(self.config, DEVICE_CONFIGS[self.type])  # type: ignore[no-any-return]


class Io(Camel, frozen=True):
    digital_inputs: Annotated[tuple[DigitalInput, ...], Meta(max_length=256)] = ()
    digital_outputs: Annotated[tuple[DigitalOutput, ...], Meta(max_length=256)] = ()
    devices: Annotated[tuple[Device, ...], Meta(max_length=64)] = ()


class Streams(Camel, frozen=True):
    """Messages per second; 0: none."""

    heartbeat_hz: Hertz = 1.0
    state_hz: Hertz = 10.0
    telemetry_hz: Hertz = 2.0
    traffic_hz: Hertz = 10.0


class Safety(Camel, frozen=True):
    stop_on_estop: bool = True
    stop_on_obstacle: bool = True
    obstacle_stop_distance_meters: Annotated[float, Meta(ge=0, le=1000)] = 0.6
    obstacle_warn_distance_meters: Annotated[float, Meta(ge=0, le=1000)] = 1.2


class RobotFile(Camel, frozen=True):
    """A whole robot_config.json."""

    identity: Identity
    runtime: Runtime
    dimensions: Dimensions
    motors: Annotated[tuple[Motor, ...], Meta(max_length=64)]
    schema_version: Literal[1] = 1
    nats: Nats = Nats()
    capabilities: Capabilities = Capabilities()
    io: Io = Io()
    streams: Streams = Streams()
    safety: Safety = Safety()


# ── names of the original file ──────────────────────────────────────────────────────────────────

# The original robot_config.json has other names, which are accepted, too:
#
#     there                                             here
#     settingsBootstrapMode: ROBOT_WINS, BACKEND_WINS   LOCAL, BACKEND
#     resetPolicy: supportsReset, resetCooldownMs       allowReset, cooldownSeconds
#     type of inputs and outputs                        role
#     supportedModules: object of true and false        list
#     nats, nats.timeouts: connectTimeoutMs,            connectSeconds, requestSeconds,
#     requestTimeoutMs, reconnectWaitMs                 reconnectWaitSeconds of timeouts

Values = dict[str, Any]
BOOTSTRAP_MODES = {"ROBOT_WINS": "LOCAL", "BACKEND_WINS": "BACKEND"}
PLAIN_POINTS = ("DIGITAL", "DIGITAL_INPUT", "DIGITAL_OUTPUT")
"""Types of inputs and outputs that say nothing about what they are for."""
MODULE_ENDING = "Module"


class Synonym(NamedTuple):
    """Another name of a key. ``meaning``: of its value; a value of another type than expected stays
    as it is, and reading the file names the mistake."""

    key: str
    meaning: Callable[[Any], Any] = lambda value: value


def _seconds(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value / 1000 if is_number else value


RESET_POLICY = {
    "supportsReset": Synonym("allowReset"),
    "resetCooldownMs": Synonym("cooldownSeconds", _seconds),
}
TIMEOUTS = {
    "connectTimeoutMs": Synonym("connectSeconds", _seconds),
    "requestTimeoutMs": Synonym("requestSeconds", _seconds),
    "reconnectWaitMs": Synonym("reconnectWaitSeconds", _seconds),
}
POINTS = {"type": Synonym("role", lambda value: "GENERAL" if value in PLAIN_POINTS else value)}


def in_own_words(file: Any) -> Any:
    """The values of a robot_config.json with the names that are used here."""
    if not isinstance(file, dict):
        return file
    made = {
        "runtime": _changed(file.get("runtime"), _runtime),
        "nats": _changed(file.get("nats"), _nats),
        "capabilities": _changed(file.get("capabilities"), _capabilities),
        "motors": _each(file.get("motors"), _motor),
        "io": _changed(file.get("io"), _io),
    }
    return file | {key: value for key, value in made.items() if key in file}


def _changed(value: Any, change: Callable[[Values], Values]) -> Any:
    return change(value) if isinstance(value, dict) else value


def _each(value: Any, change: Callable[[Values], Values]) -> Any:
    return [_changed(each, change) for each in value] if isinstance(value, list) else value


def _renamed(values: Values, synonyms: Mapping[str, Synonym], place: str) -> Values:
    made: Values = {}
    for key, value in values.items():
        other = synonyms.get(key)
        if other is not None and other.key in values:
            raise ConfigError(f"{key} and {other.key} mean the same; give one", key=place)
        made[other.key if other else key] = other.meaning(value) if other else value
    return made


def _runtime(runtime: Values) -> Values:
    policy = runtime.get("startupPolicy")
    mode = policy.get("settingsBootstrapMode") if isinstance(policy, dict) else None
    if isinstance(policy, dict) and isinstance(mode, str) and mode in BOOTSTRAP_MODES:
        policy = policy | {"settingsBootstrapMode": BOOTSTRAP_MODES[mode]}
        return runtime | {"startupPolicy": policy}
    return runtime


def _nats(nats: Values) -> Values:
    outside = {key: value for key, value in nats.items() if key in TIMEOUTS}
    inside = nats.get("timeouts", {})
    if not isinstance(inside, dict) or not (outside or inside):
        return nats
    rest = {key: value for key, value in nats.items() if key not in outside}
    return rest | {"timeouts": _renamed(outside | inside, TIMEOUTS, "nats.timeouts")}


def _capabilities(capabilities: Values) -> Values:
    modules = capabilities.get("supportedModules")
    if isinstance(modules, dict) and all(isinstance(each, bool) for each in modules.values()):
        modules = [name for name, supported in modules.items() if supported]
    if isinstance(modules, list):
        names = [
            each.removesuffix(MODULE_ENDING) if isinstance(each, str) else each for each in modules
        ]
        return capabilities | {"supportedModules": names}
    return capabilities


def _motor(motor: Values) -> Values:
    policy = motor.get("resetPolicy")
    if isinstance(policy, dict):
        return motor | {"resetPolicy": _renamed(policy, RESET_POLICY, "motors.resetPolicy")}
    return motor


def _io(io: Values) -> Values:
    kinds = [key for key in ("digitalInputs", "digitalOutputs") if key in io]
    return io | {
        key: _each(io[key], lambda point, key=key: _renamed(point, POINTS, f"io.{key}"))  # type: ignore[misc]
        for key in kinds
    }


# ── reading ─────────────────────────────────────────────────────────────────────────────────────


def is_robot_file(text: str) -> bool:
    """Whether a text looks like a robot_config.json: it has keys that only this file has."""
    try:
        value = parse(text, "").value
    except ConfigError:
        return False
    return isinstance(value, dict) and bool(OWN_KEYS & value.keys())


def read_robot_file(text: str, file: str) -> RobotFile:
    """A robot_config.json; every error names file, line, key, value and what is allowed."""
    document = parse(text, file)  # JSON is YAML; this reader knows the lines
    try:
        robot: RobotFile = read(in_own_words(document.value), RobotFile)
        check_robot(robot)
    except ConfigError as problem:
        raise document.error((), problem) from None
    return robot


def check_robot(robot: RobotFile) -> None:
    """Raises a `ConfigError` for values that do not fit together."""
    motors = _distinct("motors", "motorId", [motor.motor_id for motor in robot.motors])
    for number, motor in enumerate(robot.motors):
        _check_limits(motor.limits, f"motors.{number}.limits")
    io = robot.io
    points = [point.io_id for point in io.digital_inputs]
    points += [point.io_id for point in io.digital_outputs]
    known = {
        "motor": motors,
        "io": _distinct("io", "ioId", points),
        "device": _distinct("io.devices", "deviceId", [device.device_id for device in io.devices]),
    }
    for number, point in enumerate(io.digital_inputs):
        _check_input(point, motors, f"io.digitalInputs.{number}")
    for number, device in enumerate(io.devices):
        _check_device(device, f"io.devices.{number}.config")
    _check_distances(robot.safety)
    if robot.runtime.simulation_profile:
        inputs = {point.io_id for point in io.digital_inputs}
        _check_profile(robot.runtime.simulation_profile, known, inputs)


def _check_profile(
    profile: SimulationProfile, known: dict[str, set[str]], inputs: set[str]
) -> None:
    place = "runtime.simulationProfile"
    try:
        check_profile(profile)
    except ConfigError as problem:
        raise problem.within(place) from None
    for number, rule in enumerate(profile.fault_injection.rules):
        kind, _, name = rule.target.partition(":")
        if name and name not in known[kind]:
            key = f"{place}.faultInjection.rules.{number}.target"
            raise unknown(kind, name, known[kind], key=key)
    for number, change in enumerate(profile.io_overrides.input_script):
        if change.io_id not in inputs:
            key = f"{place}.ioOverrides.inputScript.{number}.ioId"
            raise unknown("input", change.io_id, inputs, key=key)


def _distinct(place: str, key: str, names: list[str]) -> set[str]:
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ConfigError(f"two entries have this {key}", key=place, value=name)
    return set(names)


def _check_limits(limits: Limits, key: str) -> None:
    """Speeds are positive; all limits of a motor are lengths, or all are angles."""
    units = SAME_KIND[limits.max_speed.unit.partition("/")[0]]
    for name, field_name in zip(
        limits.__struct_encode_fields__, limits.__struct_fields__, strict=True
    ):
        quantity: Quantity | None = getattr(limits, field_name)
        if quantity is None:
            continue
        behind = TIMES[name]
        allowed = [unit + behind for unit in units]
        if quantity.unit not in allowed:
            raise ConfigError(
                "the unit does not fit",
                key=f"{key}.{name}.unit",
                value=quantity.unit,
                allowed=" ".join(allowed),
            )
        if behind and quantity.value <= 0:
            raise ConfigError(
                "out of range", key=f"{key}.{name}.value", value=quantity.value, allowed="> 0"
            )
    low, high = limits.si.lowest, limits.si.highest
    if low is not None and high is not None and low >= high:
        raise ConfigError(
            "the lower bound is not below the upper one",
            key=f"{key}.positionMin",
            value=limits.position_min and limits.position_min.value,
        )


def _check_input(point: DigitalInput, motors: set[str], key: str) -> None:
    needs_motor = point.role in ("LIMIT_MIN", "LIMIT_MAX")
    if needs_motor and point.motor_id is None:
        raise ConfigError("this key is missing", key=f"{key}.motorId", allowed="a motorId")
    if point.motor_id is not None and point.motor_id not in motors:
        raise unknown("motor", point.motor_id, motors, key=f"{key}.motorId")


def _check_device(device: Device, key: str) -> None:
    try:
        device.settings  # noqa: B018 - reading raises
    except ConfigError as problem:
        raise problem.within(key) from None


def _check_distances(safety: Safety) -> None:
    stop, warn = safety.obstacle_stop_distance_meters, safety.obstacle_warn_distance_meters
    if warn < stop:
        raise ConfigError(
            "the robot would stop before it warns",
            key="safety.obstacleWarnDistanceMeters",
            value=warn,
            allowed=f"≥ obstacleStopDistanceMeters, here {stop:g}",
        )
