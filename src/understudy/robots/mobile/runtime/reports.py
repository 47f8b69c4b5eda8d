"""What robots report: the payloads of their streams, and the messages of all robots together."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET, Struct
from numpy.typing import NDArray

from understudy.ports import WireMessage
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.hardware_interface import MotorFault, Rows, TimedHardware
from understudy.robots.mobile.runtime.messages import (
    Battery,
    FaultEntry,
    FaultLevel,
    Health,
    Heartbeat,
    LidarReading,
    Localization,
    LocalizationReading,
    MotorMode,
    MotorState,
    Pose,
    RobotStatus,
    State,
    StateMarker,
    Telemetry,
    TrafficState,
    Velocity,
    encoded,
    subject,
)
from understudy.robots.mobile.runtime.outgoing import (
    BOOT,
    RobotKey,
    SendQueue,
    uuid_text,
    uuid_texts,
)
from understudy.robots.mobile.runtime.table import (
    HEARTBEAT,
    STATE,
    TELEMETRY,
    Codes,
    Flags,
    Table,
    rows_of,
)
from understudy.robots.mobile.runtime.tick import (
    STATUSES,
    STOPS,
    UNLIMITED,
    braking_distance_of,
)
from understudy.space.compiled import compiled
from understudy.units import seconds

SILENT = MotorFault("NOT_CONNECTED", "the motor does not answer")
STILL = 1e-4
"""m/s or rad/s below which a motor or a robot does not move."""
IDLE, STOPPED, MOVING, HOMING, ERROR = range(5)
LOCALIZATIONS: tuple[Localization, ...] = ("OK", "DEGRADED", "LOST")
MODES: tuple[MotorMode, ...] = ("IDLE", "STOPPED", "MOVING", "HOMING", "ERROR")
DEGRADED_AFTER, LOST_AFTER = 50.0, 200.0
"""Metres since the last correction of the pose, for robots that correct it by markers."""


class Link(NamedTuple):
    """The connection, for health."""

    connected: bool
    given_up: int


def find_sound(table: Table, robots: slice) -> Flags:
    """Robots without a fault: neither a motor nor a lidar nor an input is down."""
    down = table.drive_down[robots] | table.function_down[robots]
    sound: Flags = table.lidar_up[robots] & table.inputs_up[robots] & ~down
    return sound


def find_working(table: Table, hardware: TimedHardware, sound: Flags) -> Flags:
    """Robots without a fault whose devices are all connected."""
    working = sound.copy()
    if table.all_devices.size:
        lost = ~hardware.sensors.connected(table.all_devices)
        working[table.device_robot[lost]] = False
    return working


def find_nearest(table: Table, hardware: TimedHardware, asked: Flags) -> NDArray[np.float64]:
    """Metres to the nearest obstacle that a lidar of these robots sees; `UNLIMITED`: none."""
    nearest = np.full(table.size, UNLIMITED)
    chosen = asked[table.lidar_robot]
    found = hardware.sensors.nearest(table.lidars[chosen])
    np.minimum.at(nearest, table.lidar_robot[chosen], found)
    return nearest


def find_localizations(table: Table) -> Codes:
    """Codes of how well the robots know their poses."""
    away = np.where(table.corrects_pose, table.since_correction, 0.0)
    return (away > DEGRADED_AFTER).astype(np.int8) + (away > LOST_AFTER)


def find_modes(table: Table, rows: Rows) -> Codes:
    """Codes of the modes of all motors; those of these robots are up to date."""
    fill_modes(
        rows,
        table.motor_spans,
        table.stop,
        table.rolling,
        table.homing,
        table.connected,
        table.faulty,
        table.modes,
    )
    return table.modes


@compiled
def fill_modes(
    rows: Rows,
    spans: Rows,
    stop: Codes,
    rolling: NDArray[np.float64],
    homing: Flags,
    connected: Flags,
    faulty: Flags,
    modes: Codes,
) -> None:
    """Fills ``modes`` of the motors of these robots."""
    for row in rows:
        for n in range(spans[row, 0], spans[row, 1]):
            if faulty[n] or not connected[n]:
                modes[n] = ERROR
            elif homing[n]:
                modes[n] = HOMING
            elif abs(rolling[n]) > STILL:
                modes[n] = MOVING
            else:
                modes[n] = STOPPED if stop[row] != 0 else IDLE


def marker_of(file: RobotFile) -> StateMarker:
    """Mode and profile; a REAL robot has no profile."""
    profile = file.runtime.simulation_profile
    name = profile.profile_name if profile is not None else "default"
    return StateMarker(file.runtime.mode, name if file.runtime.mode == "MOCK" else None)


class Reports:
    """What a robot reports of itself."""

    def __init__(self, table: Table, row: int, hardware: TimedHardware) -> None:
        self._table = table
        self._row = row
        self._hardware = hardware
        file = table.files[row]
        self._motor_ids = [motor.motor_id for motor in file.motors]
        self._first, self._end = (int(n) for n in table.motor_spans[row])
        self._marker = marker_of(file)
        self.profile_name = self._marker.simulation_profile_name

    # ── parts ──

    @property
    def pose(self) -> Pose:
        return Pose(*self._table.pose[self._row].tolist())

    @property
    def status(self) -> RobotStatus:
        return _status(int(self._table.status[self._row]))

    @property
    def velocity(self) -> tuple[float, float]:
        """Forward (m/s) and turning (rad/s)."""
        forward, _, turning = self._table.speeds[self._row].tolist()
        return forward, turning

    @property
    def is_moving(self) -> bool:
        return max(abs(speed) for speed in self.velocity) > STILL

    @property
    def nearest(self) -> float:
        """Metres to the nearest obstacle that a lidar sees; `UNLIMITED` if there is none."""
        rows = self._table.lidars[self._table.lidar_robot == self._row]
        return float(self._hardware.sensors.nearest(rows).min(initial=UNLIMITED))

    @property
    def speed_limit(self) -> float:
        """m/s, by commands and traffic control; `UNLIMITED` if there is none."""
        table, row = self._table, self._row
        return float(min(table.speed_limit[row], table.traffic_limit[row]))

    def battery(self) -> float:
        rows = self._table.robots[self._row : self._row + 1]
        return float(self._hardware.read_robots(rows).battery_percent[0])

    def localization(self) -> Localization:
        if not self._table.corrects_pose[self._row]:
            return "OK"
        away = self._table.since_correction[self._row]
        if away <= DEGRADED_AFTER:
            return "OK"
        return "DEGRADED" if away <= LOST_AFTER else "LOST"

    def motors(self) -> dict[str, MotorState]:
        table, span = self._table, slice(self._first, self._end)
        modes = find_modes(table, rows_of([self._row]))[span]
        found = map(
            MotorState,
            table.connected[span].tolist(),
            [MODES[code] for code in modes.tolist()],
            table.position[span].tolist(),
            table.rolling[span].tolist(),
        )
        states = dict(zip(self._motor_ids, found, strict=True))
        if table.drive_down[self._row] or table.function_down[self._row]:
            for motor, fault in self.motor_faults():
                was = states[motor]
                states[motor] = MotorState(
                    was.connected, was.mode, was.position, was.velocity, fault.code, fault.message
                )
        return states

    def motor_faults(self) -> list[tuple[str, MotorFault]]:
        """The motors that are down, and why."""
        table = self._table
        found = []
        for number, name in enumerate(self._motor_ids, self._first):
            if table.faulty[number] or not table.connected[number]:
                fault = self._hardware.motors.fault(int(table.motors[number]))
                found.append((name, fault or SILENT))
        return found

    def inputs(self) -> dict[str, bool]:
        table = self._table
        first, end = table.input_spans[self._row]
        values = self._hardware.io.read_inputs(table.inputs[first:end])
        return dict(zip(table.input_ids[self._row], values.tolist(), strict=True))

    def faults(self) -> tuple[FaultLevel, list[FaultEntry]]:
        table, row = self._table, self._row
        found: list[FaultEntry] = []
        if table.drive_down[row] or table.function_down[row]:
            for name, fault in self.motor_faults():
                drives = table.is_drive[self._first + self._motor_ids.index(name)]
                text = f"{name}: {fault.message}"
                found.append(FaultEntry(fault.code, text, "ERROR" if drives else "WARN"))
        if not table.lidar_up[row]:
            found.append(FaultEntry("LIDAR_NOT_CONNECTED", "a lidar does not answer", "ERROR"))
        if not table.inputs_up[row]:
            found.append(FaultEntry("INPUT_NOT_CONNECTED", "an input does not answer", "ERROR"))
        severe = any(fault.severity == "ERROR" for fault in found)
        return ("ERROR" if severe else "WARN") if found else "NONE", found

    # ── payloads ──

    def state(self) -> State:
        table, row = self._table, self._row
        level, faults = self.faults()
        stop = STOPS[table.stop[row]]
        return State(
            pose=self.pose,
            velocity=Velocity(*self.velocity),
            battery_percent=self.battery(),
            localization_status=self.localization(),
            fault_level=level,
            faults=faults,
            status=self.status,
            estop_pressed=bool(table.estop[row]),
            safety_stop_active=stop is not None,
            safety_stop_reason=stop,
            motors=self.motors(),
            runtime_mode=self._marker.runtime_mode,
            simulation_profile_name=self.profile_name,
        )

    def heartbeat(self, boot_id: str, uptime_seconds: float, seq: int) -> Heartbeat:
        version = self._table.files[self._row].identity.firmware_version
        return Heartbeat(
            boot_id, version or "", self.status, self._marker.runtime_mode, uptime_seconds, seq
        )

    def telemetry(self, link: Link) -> Telemetry:
        table, row = self._table, self._row
        nearest = self.nearest
        near = bool(nearest <= table.warn_distance[row] or table.blocked[row])
        return Telemetry(
            battery=Battery(self.battery()),
            motors=self.motors(),
            lidar=LidarReading(
                near, nearest if nearest < UNLIMITED else None, bool(table.lidar_up[row])
            ),
            localization=LocalizationReading(self.localization(), self.pose),
            inputs=self.inputs(),
            health=Health(link.connected, self.hardware_ok(), link.given_up),
            state_json=self._marker,
        )

    def traffic(self, node_id: str | None, route_id: str | None) -> TrafficState:
        return TrafficState(
            self.pose,
            float(self._table.speeds[self._row, 0]),
            self.braking_distance(),
            UNSET if node_id is None else node_id,
            UNSET if route_id is None else route_id,
        )

    def braking_distance(self) -> float:
        """Metres until the robot stands if it brakes now."""
        table = self._table
        return braking_distance_of(table.wheels, table.figures, table.speeds, self._row)

    def hardware_ok(self) -> bool:
        table, row = self._table, self._row
        down = table.drive_down[row] or table.function_down[row]
        if down or not table.inputs_up[row] or not table.lidar_up[row]:
            return False
        devices: Sequence[int] = table.devices[row]
        return not devices or bool(self._hardware.sensors.connected(rows_of(devices)).all())


def _status(code: int) -> RobotStatus:
    return STATUSES[code] if code >= 0 else "OFFLINE"  # before the first tick


# ── messages of streams ───────────────────────────────────────────────────────────────────────────

# The text of such a message is the same every time but for some values. Robots of the same build
# share a template: the plain message of `Reports`, encoded once with a mark in the place of each
# value and cut at the marks, so that it has the keys and the order of the plain message. At a tick
# the values of all messages that are due are turned into text column by column, and each message is
# its template with one row of texts. A robot with a fault sends plain messages: these list its
# faults.

MARK = "\ue000value "
MARKED = re.compile(rf'"{MARK}(\d+)"'.encode())
IS_STOPPED = tuple(stop is not None for stop in STOPS)
BOOLEANS = (False, True)
_encode = msgspec.json.Encoder().encode


class Snapshot(NamedTuple):
    """What the messages of a tick show, of the robots that send one. Texts are JSON. `nearest`: of
    the robots whose telemetry is due."""

    table: Table
    battery: NDArray[np.float64]
    nearest: NDArray[np.float64]
    localization: NDArray[np.int8]
    working: NDArray[np.bool_]
    modes: NDArray[np.int8]
    inputs: Flags
    stamp: bytes
    uptime: bytes
    given_up: bytes


class Batch(NamedTuple):
    """Messages of one template: the rows of their robots, the places of their first motors and
    inputs, and their ids as JSON."""

    now: Snapshot
    rows: Rows
    motors: Rows
    inputs: Rows
    ids: Sequence[bytes]


Texts = Iterable[bytes]
Column = Callable[[Batch], Texts]
"""The texts of one value, one for each message of a batch."""


def numbers(values: NDArray[Any]) -> list[bytes]:
    """Each number as JSON."""
    return _encode(values.tolist())[1:-1].split(b",")


def distances(values: NDArray[np.float64]) -> list[bytes]:
    """Numbers as `numbers` writes them; what is unlimited is null."""
    texts = numbers(values)
    for place in np.flatnonzero(values >= UNLIMITED).tolist():
        texts[place] = b"null"
    return texts


class Template(NamedTuple):
    """A message with `%b` in the place of each value, and the columns that give the values."""

    text: bytes
    columns: Sequence[Column]

    def messages(self, batch: Batch) -> Iterable[bytes]:
        rows = zip(*(column(batch) for column in self.columns), strict=True)
        return (self.text % row for row in rows)


class Build(NamedTuple):
    """What the templates of a robot depend on."""

    motors: tuple[str, ...]
    inputs: tuple[str, ...]
    marker: StateMarker
    firmware: str


class TemplateMaker:
    """Makes the templates of one build. ``own``: the ids, the codes and the boot ids of the robots,
    as JSON."""

    def __init__(self, build: Build, own: Sequence[Sequence[bytes]]) -> None:
        self._build = build
        self._own = own
        self._columns: list[Column] = []

    def templates(self) -> tuple[Template, ...]:
        """The templates by stream: heartbeat, state, telemetry."""
        return tuple(map(self._template, (self._heartbeat, self._state, self._telemetry)))

    def _template(self, payload: Callable[[], Struct]) -> Template:
        self._columns = []
        text = encoded(
            self._mark(lambda batch: batch.ids),
            self._own_text(0),
            self._own_text(1),
            self._same(lambda now: now.stamp),
            payload(),
        )
        parts = MARKED.split(text)
        constant = b"%b".join(part.replace(b"%", b"%%") for part in parts[::2])
        return Template(constant, [self._columns[int(number)] for number in parts[1::2]])

    # ── marks ──

    def _mark(self, column: Column) -> Any:
        self._columns.append(column)
        return f"{MARK}{len(self._columns) - 1}"

    def _same(self, text: Callable[[Snapshot], bytes]) -> Any:
        return self._mark(lambda batch: [text(batch.now)] * len(batch.ids))

    def _own_text(self, place: int) -> Any:
        texts = self._own[place]
        return self._mark(lambda batch: [texts[row] for row in batch.rows.tolist()])

    def _number(self, values: Callable[[Batch], NDArray[Any]]) -> Any:
        return self._mark(lambda batch: numbers(values(batch)))

    def _word(self, words: Sequence[Any], codes: Callable[[Batch], NDArray[Any]]) -> Any:
        texts = [_encode(word) for word in words]
        return self._mark(lambda batch: [texts[code] for code in codes(batch).tolist()])

    # ── payloads ──

    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(
            boot_id=self._own_text(2),
            firmware_version=self._build.firmware,
            status=self._status(),
            runtime_mode=self._build.marker.runtime_mode,
            uptime_seconds=self._same(lambda now: now.uptime),
            seq=self._number(lambda batch: batch.now.table.beats[batch.rows]),
        )

    def _state(self) -> State:
        return State(
            pose=self._pose(),
            velocity=Velocity(
                self._number(lambda batch: batch.now.table.speeds[batch.rows, 0]),
                self._number(lambda batch: batch.now.table.speeds[batch.rows, 2]),
            ),
            battery_percent=self._battery(),
            localization_status=self._localization(),
            fault_level="NONE",
            faults=[],
            status=self._status(),
            estop_pressed=self._word(BOOLEANS, lambda batch: batch.now.table.estop[batch.rows]),
            safety_stop_active=self._word(
                IS_STOPPED, lambda batch: batch.now.table.stop[batch.rows]
            ),
            safety_stop_reason=self._word(STOPS, lambda batch: batch.now.table.stop[batch.rows]),
            motors=self._motors(),
            runtime_mode=self._build.marker.runtime_mode,
            simulation_profile_name=self._build.marker.simulation_profile_name,
        )

    def _telemetry(self) -> Telemetry:
        return Telemetry(
            battery=Battery(self._battery()),
            motors=self._motors(),
            lidar=LidarReading(
                obstacle_detected=self._word(BOOLEANS, _is_near),
                nearest_obstacle_meters=self._mark(
                    lambda batch: distances(batch.now.nearest[batch.rows])
                ),
                connected=self._word(BOOLEANS, lambda batch: batch.now.table.lidar_up[batch.rows]),
            ),
            localization=LocalizationReading(self._localization(), self._pose()),
            inputs={name: self._input(place) for place, name in enumerate(self._build.inputs)},
            health=Health(
                nats_connected=True,
                simulated_hardware_ok=self._word(
                    BOOLEANS, lambda batch: batch.now.working[batch.rows]
                ),
                messages_given_up=self._same(lambda now: now.given_up),
            ),
            state_json=self._build.marker,
        )

    def _status(self) -> Any:
        return self._word(STATUSES, lambda batch: np.maximum(batch.now.table.status[batch.rows], 0))

    def _battery(self) -> Any:
        return self._number(lambda batch: batch.now.battery[batch.rows])

    def _localization(self) -> Any:
        return self._word(LOCALIZATIONS, lambda batch: batch.now.localization[batch.rows])

    def _pose(self) -> Pose:
        def coordinate(place: int) -> Any:
            return self._number(lambda batch: batch.now.table.pose[batch.rows, place])

        return Pose(coordinate(0), coordinate(1), coordinate(2))

    def _input(self, place: int) -> Any:
        return self._word(BOOLEANS, lambda batch: batch.now.inputs[batch.inputs + place])

    def _motors(self) -> dict[str, MotorState]:
        def state(place: int) -> MotorState:
            return MotorState(
                self._word(BOOLEANS, lambda batch: batch.now.table.connected[batch.motors + place]),
                self._word(MODES, lambda batch: batch.now.modes[batch.motors + place]),
                self._number(lambda batch: batch.now.table.position[batch.motors + place]),
                self._number(lambda batch: batch.now.table.rolling[batch.motors + place]),
            )

        return {motor: state(place) for place, motor in enumerate(self._build.motors)}


def _is_near(batch: Batch) -> NDArray[np.bool_]:
    table, rows = batch.now.table, batch.rows
    near: NDArray[np.bool_] = batch.now.nearest[rows] <= table.warn_distance[rows]
    return near | table.blocked[rows]


class StreamMessages:
    """The messages of the streams of a table. ``keys``: of the ids of the robots; ``plain``
    publishes a message of a robot (row, stream, time) in the plain way."""

    KINDS = ("heartbeat", "state", "telemetry")
    """Streams whose messages are made together."""

    def __init__(
        self,
        table: Table,
        hardware: TimedHardware,
        queue: SendQueue,
        keys: Sequence[RobotKey],
        plain: Callable[[int, int, int], None],
    ) -> None:
        assert tuple(range(len(self.KINDS))) == (HEARTBEAT, STATE, TELEMETRY)
        self._table = table
        self._hardware = hardware
        self._queue = queue
        self._plain = plain
        self._keys = np.array(keys, dtype=np.uint64)
        self._first_motor = np.ascontiguousarray(table.motor_spans[:, 0])
        self._streams = table.due.shape[1]
        self._battery = np.zeros(table.size)
        identities = [file.identity for file in table.files]
        own = [
            [_encode(each.robot_id) for each in identities],
            [_encode(each.robot_code) for each in identities],
            [_encode(uuid_text(key, BOOT)) for key in keys],
        ]
        self._subjects = [
            [subject(each.robot_id, kind) for kind in self.KINDS] for each in identities
        ]
        builds = [_build_of(table, row) for row in range(table.size)]
        known = list(dict.fromkeys(builds))
        self._build = np.array([known.index(each) for each in builds], dtype=np.int64)
        self._templates = [TemplateMaker(each, own).templates() for each in known]

    def publish(self, due: Rows, now: int) -> None:
        """Publishes the messages that are due (robot · number of streams + stream, ascending), in
        this order."""
        sound = find_sound(self._table, slice(None))
        rows, streams = np.divmod(due, self._streams)
        texts: list[bytes | None] = [None] * due.size
        together = np.flatnonzero(sound[rows] & (streams < len(self.KINDS)))
        measured = np.zeros(sound.size, dtype=np.bool_)
        measured[rows[streams == TELEMETRY]] = True
        snapshot = self._snapshot(np.unique(rows), sound, measured, now)
        self._write(together, rows, streams, snapshot, texts)
        send, subjects = self._queue.send_newest, self._subjects
        for row, stream, text in zip(rows.tolist(), streams.tolist(), texts, strict=True):
            if text is None:
                self._plain(row, stream, now)
            else:
                send(WireMessage(subjects[row][stream], text))

    def _write(
        self, places: Rows, rows: Rows, streams: Rows, now: Snapshot, texts: list[bytes | None]
    ) -> None:
        """Fills the ``texts`` at some places, with messages of ``rows`` and ``streams``."""
        table, of, kinds = self._table, rows[places], streams[places]
        # The messages of a robot follow each other, each with the next number.
        before = np.arange(of.size) - np.searchsorted(of, of)
        ids = uuid_texts(self._keys[of], table.sent[of] + 1 + before)
        np.add.at(table.sent, of, 1)
        table.beats[of[kinds == HEARTBEAT]] += 1
        groups = self._build[of] * len(self.KINDS) + kinds
        for group in np.unique(groups).tolist():
            build, stream = divmod(group, len(self.KINDS))
            chosen = np.flatnonzero(groups == group)
            own = of[chosen]
            first = table.input_spans[own, 0]
            batch = Batch(
                now, own, self._first_motor[own], first, [ids[n] for n in chosen.tolist()]
            )
            messages = self._templates[build][stream].messages(batch)
            for place, message in zip(places[chosen].tolist(), messages, strict=True):
                texts[place] = message

    def _snapshot(self, rows: Rows, sound: Flags, measured: Flags, now: int) -> Snapshot:
        """What the messages of these robots show. ``measured``: those whose telemetry is due."""
        table, queue = self._table, self._queue
        robots = table.robots[rows]
        self._battery[rows] = self._hardware.read_robots(robots).battery_percent
        return Snapshot(
            table=table,
            battery=self._battery,
            nearest=find_nearest(table, self._hardware, measured),
            localization=find_localizations(table),
            working=find_working(table, self._hardware, sound),
            modes=find_modes(table, rows),
            inputs=self._hardware.io.read_inputs(table.inputs),
            stamp=_encode(queue.timestamp(now)),
            uptime=_encode(seconds(now)),
            given_up=_encode(queue.given_up),
        )


def _build_of(table: Table, row: int) -> Build:
    file = table.files[row]
    motors = tuple(motor.motor_id for motor in file.motors)
    inputs = tuple(table.input_ids[row])
    return Build(motors, inputs, marker_of(file), file.identity.firmware_version or "")
