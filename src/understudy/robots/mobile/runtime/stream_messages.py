"""The messages of streams (heartbeat, state, telemetry) of all robots of a table, made together.

The text of such a message is the same every time but for some values. Robots of the same build
share a template: the plain message of `reports`, encoded once with a mark in the place of each
value and cut at the marks, so that it has the keys and the order of the plain message. At a tick
the values of all messages that are due are turned into text column by column, and each message is
its template with one row of texts. A robot with a fault sends plain messages: these list its
faults.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.ports import WireMessage
from understudy.robots.mobile.hardware_interface import Rows, TimedHardware
from understudy.robots.mobile.runtime.messages import (
    Battery,
    Health,
    Heartbeat,
    LidarReading,
    LocalizationReading,
    MotorState,
    Pose,
    State,
    StateMarker,
    Telemetry,
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
from understudy.robots.mobile.runtime.reports import (
    LOCALIZATIONS,
    MODES,
    find_localizations,
    find_modes,
    find_sound,
    find_working,
    marker_of,
)
from understudy.robots.mobile.runtime.table import HEARTBEAT, STATE, TELEMETRY, UNLIMITED, Table
from understudy.robots.mobile.runtime.tick import STATUSES, STOPS
from understudy.units import seconds

MARK = "\ue000value "
MARKED = re.compile(rf'"{MARK}(\d+)"'.encode())
STOPPED = tuple(stop is not None for stop in STOPS)
BOOLEANS = (False, True)
_encode = msgspec.json.Encoder().encode


class Snapshot(NamedTuple):
    """What the messages of a tick show, of all robots and motors. Texts are JSON."""

    table: Table
    battery: NDArray[np.float64]
    localization: NDArray[np.int8]
    working: NDArray[np.bool_]
    modes: NDArray[np.int8]
    stamp: bytes
    uptime: bytes
    given_up: bytes


class Batch(NamedTuple):
    """Messages of one template: the rows of their robots, the places of their first motors, and
    their ids as JSON."""

    now: Snapshot
    rows: Rows
    motors: Rows
    ids: Sequence[bytes]


Texts = Iterable[bytes]
Column = Callable[[Batch], Texts]
"""The texts of one value, one for each message of a batch."""


def numbers(values: NDArray[Any]) -> list[bytes]:
    """Each number as JSON."""
    return _encode(values.tolist())[1:-1].split(b",")


def distances(values: NDArray[np.float64]) -> list[bytes]:
    """As `numbers`; what is unlimited is null."""
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
        """By stream: heartbeat, state, telemetry."""
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
            safety_stop_active=self._word(STOPPED, lambda batch: batch.now.table.stop[batch.rows]),
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
                    lambda batch: distances(batch.now.table.nearest[batch.rows])
                ),
                connected=self._word(BOOLEANS, lambda batch: batch.now.table.lidar_up[batch.rows]),
            ),
            localization=LocalizationReading(self._localization(), self._pose()),
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
    near: NDArray[np.bool_] = table.nearest[rows] <= table.warn_distance[rows]
    return near | table.blocked[rows]


class StreamMessages:
    """The messages of the streams of a table. ``keys``: of the ids of the robots; ``plain``
    publishes a message of a robot (row, stream, time) in the plain way."""

    KINDS = ("heartbeat", "state", "telemetry")
    """By stream: the kinds that are made together."""

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
        self._write(together, rows, streams, self._snapshot(sound, now), texts)
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
            batch = Batch(now, own, self._first_motor[own], [ids[n] for n in chosen.tolist()])
            messages = self._templates[build][stream].messages(batch)
            for place, message in zip(places[chosen].tolist(), messages, strict=True):
                texts[place] = message

    def _snapshot(self, sound: NDArray[np.bool_], now: int) -> Snapshot:
        table, queue = self._table, self._queue
        return Snapshot(
            table=table,
            battery=self._hardware.read_robots(table.robots).battery_percent,
            localization=find_localizations(table),
            working=find_working(table, self._hardware, sound),
            modes=find_modes(table, slice(None), slice(None)),
            stamp=_encode(queue.timestamp(now)),
            uptime=_encode(seconds(now)),
            given_up=_encode(queue.given_up),
        )


def _build_of(table: Table, row: int) -> Build:
    file = table.files[row]
    motors = tuple(motor.motor_id for motor in file.motors)
    return Build(motors, marker_of(file), file.identity.firmware_version or "")
