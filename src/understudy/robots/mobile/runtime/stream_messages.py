"""The messages of the streams of all robots, written together.

The text of such a message is the same every time but for some values. Robots of the same build
share a template: the plain message of `Reports`, encoded once with a mark in the place of each
value and cut at the marks, so that it has the keys and the order of the plain message. A template
is a table of fields: constant pieces of text, and values. At a tick one kernel collects the numbers
of the messages that are due, msgspec makes text of them, and a second kernel writes the messages
with their subjects into one piece of data. A robot with a fault sends plain messages: these list
its faults.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.ports.packed import BEGIN, PackedMessages
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
from understudy.robots.mobile.runtime.outgoing import BOOT, STEPS, RobotKey, SendQueue, uuid_text
from understudy.robots.mobile.runtime.reports import (
    LOCALIZATIONS,
    MODES,
    find_localizations,
    find_modes,
    find_nearest,
    find_sound,
    find_working,
    marker_of,
)
from understudy.robots.mobile.runtime.table import (
    HEARTBEAT,
    STATE,
    TELEMETRY,
    Codes,
    Flags,
    Floats,
    Table,
)
from understudy.robots.mobile.runtime.tick import STATUSES, STOPS, UNLIMITED
from understudy.space.compiled import WORD, compiled, copy_word, inlined
from understudy.units import seconds

Bytes = NDArray[np.uint8]
Table3 = NDArray[np.int64]

MARK = "\ue000value "
MARKED = re.compile(rf'"{MARK}(\d+)"'.encode())
IS_STOPPED = tuple(stop is not None for stop in STOPS)
BOOLEANS = (False, True)
_encode = msgspec.json.Encoder().encode
HIGH_STEP, LOW_STEP = (np.uint64(step) for step in STEPS)

# ── templates ────────────────────────────────────────────────────────────────────────────────────


class Field(NamedTuple):
    """A part of a message: the constant piece `before`, and then `what`, of the motor or input
    number `place`. `first`: number of the piece of text for the code 0, or the piece itself."""

    before: int
    what: int
    place: int = 0
    first: int = 0


NOTHING, OWN, SHARED, MESSAGE_ID, BEATS = range(5)
"""A piece of the robot; a piece of the tick; the id; the count of heartbeats."""
POSE, SPEED, BATTERY, POSITION, ROLLING, NEAREST = range(5, 11)
"""Numbers. `NEAREST`: the piece `first` if nothing is seen."""
STATUS, ESTOP, STOPPED, STOP, LOCALIZED, NEAR, LIDAR_UP, WORKING, CONNECTED, MODE, INPUT = range(
    11, 22
)
"""Codes of pieces."""
UUID_SIZE = 38
"""Bytes of an id as JSON; numbers and codes have less."""
STAMP, UPTIME, GIVEN_UP = range(3)
"""Pieces of a tick."""
ROBOT_ID, ROBOT_CODE, BOOT_ID, SUBJECT = range(4)
"""Pieces of a robot; one begin of a message with its subject for each stream."""


class Build(NamedTuple):
    """What the templates of a robot depend on."""

    motors: tuple[str, ...]
    inputs: tuple[str, ...]
    marker: StateMarker
    firmware: str


class Pieces:
    """Texts in one piece of data."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, ...], int] = {}
        self._texts: list[bytes] = []

    def number(self, *texts: bytes) -> int:
        """The number of the first of these texts, which follow each other."""
        if texts not in self._known:
            self._known[texts] = len(self._texts)
            self._texts += texts
        return self._known[texts]

    def add(self, texts: Sequence[bytes]) -> int:
        """The same for texts that have no other reader."""
        self._texts += texts
        return len(self._texts) - len(texts)

    def arrays(self) -> tuple[Bytes, Rows]:
        """The texts, and where each of them begins; the last number is their end."""
        return readable(b"".join(self._texts)), starts_of(self._texts)


def readable(text: bytes) -> Bytes:
    """A text that kernels copy."""
    return np.frombuffer(text + bytes(WORD), dtype=np.uint8)


def starts_of(texts: Sequence[bytes]) -> Rows:
    return np.cumsum([0, *map(len, texts)], dtype=np.int64)


class TemplateMaker:
    """Makes the templates of one build, as lists of fields."""

    def __init__(self, build: Build, pieces: Pieces) -> None:
        self._build = build
        self._pieces = pieces
        self._fields: list[Field] = []

    def templates(self) -> tuple[list[Field], ...]:
        """The templates by stream: heartbeat, state, telemetry."""
        return tuple(map(self._template, (self._heartbeat, self._state, self._telemetry)))

    def _template(self, payload: Callable[[], Struct]) -> list[Field]:
        self._fields = []
        text = encoded(
            self._mark(MESSAGE_ID),
            self._mark(OWN, ROBOT_ID),
            self._mark(OWN, ROBOT_CODE),
            self._mark(SHARED, STAMP),
            payload(),
        )
        *parts, last = MARKED.split(text)
        found = [
            self._fields[int(mark)]._replace(before=self._pieces.number(part))
            for part, mark in zip(parts[::2], parts[1::2], strict=True)
        ]
        return [*found, Field(self._pieces.number(last), NOTHING)]

    # ── marks ──

    def _mark(self, what: int, place: int = 0, first: int = 0) -> Any:
        self._fields.append(Field(0, what, place, first))
        return f"{MARK}{len(self._fields) - 1}"

    def _word(self, words: Sequence[Any], what: int, place: int = 0) -> Any:
        return self._mark(what, place, self._pieces.number(*map(_encode, words)))

    # ── payloads ──

    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(
            boot_id=self._mark(OWN, BOOT_ID),
            firmware_version=self._build.firmware,
            status=self._status(),
            runtime_mode=self._build.marker.runtime_mode,
            uptime_seconds=self._mark(SHARED, UPTIME),
            seq=self._mark(BEATS),
        )

    def _state(self) -> State:
        return State(
            pose=self._pose(),
            velocity=Velocity(self._mark(SPEED, 0), self._mark(SPEED, 2)),
            battery_percent=self._mark(BATTERY),
            localization_status=self._localization(),
            fault_level="NONE",
            faults=[],
            status=self._status(),
            estop_pressed=self._word(BOOLEANS, ESTOP),
            safety_stop_active=self._word(IS_STOPPED, STOPPED),
            safety_stop_reason=self._word(STOPS, STOP),
            motors=self._motors(),
            runtime_mode=self._build.marker.runtime_mode,
            simulation_profile_name=self._build.marker.simulation_profile_name,
        )

    def _telemetry(self) -> Telemetry:
        return Telemetry(
            battery=Battery(self._mark(BATTERY)),
            motors=self._motors(),
            lidar=LidarReading(
                obstacle_detected=self._word(BOOLEANS, NEAR),
                nearest_obstacle_meters=self._word([None], NEAREST),
                connected=self._word(BOOLEANS, LIDAR_UP),
            ),
            localization=LocalizationReading(self._localization(), self._pose()),
            inputs={
                name: self._word(BOOLEANS, INPUT, place)
                for place, name in enumerate(self._build.inputs)
            },
            health=Health(
                nats_connected=True,
                simulated_hardware_ok=self._word(BOOLEANS, WORKING),
                messages_given_up=self._mark(SHARED, GIVEN_UP),
            ),
            state_json=self._build.marker,
        )

    def _status(self) -> Any:
        return self._word(STATUSES, STATUS)

    def _localization(self) -> Any:
        return self._word(LOCALIZATIONS, LOCALIZED)

    def _pose(self) -> Pose:
        return Pose(self._mark(POSE, 0), self._mark(POSE, 1), self._mark(POSE, 2))

    def _motors(self) -> dict[str, MotorState]:
        def state(place: int) -> MotorState:
            return MotorState(
                self._word(BOOLEANS, CONNECTED, place),
                self._word(MODES, MODE, place),
                self._mark(POSITION, place),
                self._mark(ROLLING, place),
            )

        return {motor: state(place) for place, motor in enumerate(self._build.motors)}


# ── kernels ──────────────────────────────────────────────────────────────────────────────────────


class Values(NamedTuple):
    """What the messages of a tick show, of all robots, motors and inputs."""

    pose: Floats
    speeds: Floats
    battery: Floats
    position: Floats
    rolling: Floats
    nearest: Floats
    status: Codes
    estop: Flags
    stop: Codes
    localization: Codes
    near: Flags
    lidar_up: Flags
    working: Flags
    connected: Flags
    modes: Codes
    inputs: Flags


class Templates(NamedTuple):
    """`fields`: rows of `Field`, those of a template in `spans`; `of`: the first template of each
    robot. `texts`, `starts`: see `Pieces`. `own`: the first piece of each robot."""

    fields: Table3
    spans: Table3
    of: Rows
    texts: Bytes
    starts: Rows
    own: Rows


@compiled
def collect_numbers(
    due: Rows,
    streams: int,
    templates: Templates,
    motor_spans: Rows,
    values: Values,
    found: Floats,
) -> int:
    """Fills ``found`` with the numbers of the messages that are ``due``, in their order; returns
    how many there are."""
    fields, spans, of = templates[:3]
    pose, speeds, battery, position, rolling, nearest = values[:6]
    count = 0
    for each in due:
        row, stream = each // streams, each % streams
        template, motor = of[row] + stream, motor_spans[row, 0]
        for n in range(spans[template, 0], spans[template, 1]):
            what, place = fields[n, 1], fields[n, 2]
            if what < POSE or what > NEAREST:
                continue
            if what == POSE:
                found[count] = pose[row, place]
            elif what == SPEED:
                found[count] = speeds[row, place]
            elif what == BATTERY:
                found[count] = battery[row]
            elif what == POSITION:
                found[count] = position[motor + place]
            elif what == ROLLING:
                found[count] = rolling[motor + place]
            else:
                found[count] = nearest[row]
            count += 1
    return count


@compiled
def write_messages(
    due: Rows,
    streams: int,
    templates: Templates,
    motor_spans: Rows,
    input_spans: Rows,
    values: Values,
    numbers: Bytes,
    shared: Bytes,
    shared_starts: Rows,
    keys: NDArray[np.uint64],
    sent: Rows,
    beats: Rows,
    out: Bytes,
    bounds: Table3,
) -> int:
    """Writes the messages that are ``due`` into ``out``, in the form of `PackedMessages`, and fills
    ``bounds``; returns how many bytes they have.

    ``numbers``: the text of a JSON array with the numbers of `collect_numbers`; ``shared``: the
    pieces of the tick. ``sent`` and ``beats`` count the messages and heartbeats of the robots.
    """
    fields, spans, of, texts, starts, own = templates
    nearest = values.nearest
    status, estop, stop, localization, near = values[6:11]
    lidar_up, working, connected, modes, inputs = values[11:]
    at, number = 0, 1
    for message in range(due.size):
        row, stream = due[message] // streams, due[message] % streams
        template, motor, first_input = of[row] + stream, motor_spans[row, 0], input_spans[row, 0]
        sent[row] += 1
        if stream == HEARTBEAT:
            beats[row] += 1
        bounds[message, 0] = at
        piece = own[row] + SUBJECT + stream
        at = copied(texts, starts[piece], starts[piece + 1], out, at)
        line, at = at, at + 6  # the size is written when it is known: most have three digits
        begin = at
        for n in range(spans[template, 0], spans[template, 1]):
            before = fields[n, 0]
            at = copied(texts, starts[before], starts[before + 1], out, at)
            what, place, piece = fields[n, 1], fields[n, 2], fields[n, 3]
            if what == NOTHING:
                break
            if what == OWN:
                piece = own[row] + place
            elif what == SHARED:
                at = copied(shared, shared_starts[place], shared_starts[place + 1], out, at)
                continue
            elif what == MESSAGE_ID:
                at = write_uuid(keys[row, 0], keys[row, 1], sent[row], out, at)
                continue
            elif what == BEATS:
                at = write_whole(beats[row], out, at)
                continue
            elif what <= NEAREST:
                end = number
                while numbers[end] != 44 and numbers[end] != 93:  # , ]
                    end += 1
                seen = what != NEAREST or nearest[row] < UNLIMITED
                if seen:
                    at = copied(numbers, number, end, out, at)
                number = end + 1
                if seen:
                    continue
            elif what == STATUS:
                piece += max(status[row], 0)
            elif what == ESTOP:
                piece += estop[row]
            elif what in (STOPPED, STOP):
                piece += stop[row]
            elif what == LOCALIZED:
                piece += localization[row]
            elif what == NEAR:
                piece += near[row]
            elif what == LIDAR_UP:
                piece += lidar_up[row]
            elif what == WORKING:
                piece += working[row]
            elif what == CONNECTED:
                piece += connected[motor + place]
            elif what == MODE:
                piece += modes[motor + place]
            else:
                piece += inputs[first_input + place]
            at = copied(texts, starts[piece], starts[piece + 1], out, at)
        begin, at = put_size(line, begin, at, out)
        bounds[message, 1] = begin
        out[at], out[at + 1] = 13, 10
        at += 2
        bounds[message, 2] = at
    return at


@inlined
def copied(source: Bytes, first: int, end: int, out: Bytes, at: int) -> int:
    """Copies a part of ``source``; returns where it ends. Less than `WORD` bytes behind it are
    copied, too: the next text is written over them."""
    for n in range(0, end - first, WORD):
        copy_word(source, first + n, out, at + n)
    return at + (end - first)


@inlined
def digits_of(value: int) -> int:
    """Number of the digits of a whole number that is not negative."""
    digits = 1
    while value >= 10:
        digits += 1
        value //= 10
    return digits


@compiled
def write_whole(value: int, out: Bytes, at: int) -> int:
    """Writes a whole number that is not negative; returns where it ends."""
    end = at + digits_of(value)
    for n in range(end - 1, at - 1, -1):
        out[n] = 48 + value % 10
        value //= 10
    return end


@compiled
def put_size(line: int, begin: int, end: int, out: Bytes) -> tuple[int, int]:
    """Ends a line with the size of the payload behind it; moves the payload if it does not begin
    where the line ends. Returns where the payload begins and ends."""
    size = end - begin
    moved = line + digits_of(size) + 3
    if moved < begin:
        for n in range(size):
            out[moved + n] = out[begin + n]
    elif moved > begin:
        for n in range(size - 1, -1, -1):
            out[moved + n] = out[begin + n]
    out[line] = 32
    at = write_whole(size, out, line + 1)
    out[at], out[at + 1] = 13, 10
    return moved, moved + size


@inlined
def mixed(value: np.uint64) -> np.uint64:
    """The finalizer of splitmix64, which changes half of the bits if one bit changes."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def write_uuid(key_high: np.uint64, key_low: np.uint64, number: int, out: Bytes, at: int) -> int:
    """Writes `outgoing.uuid_text` as JSON; returns where it ends."""
    high = mixed(key_high + HIGH_STEP * np.uint64(number))
    low = mixed(key_low + LOW_STEP * np.uint64(number))
    high = (high & ~np.uint64(0xF000)) | np.uint64(0x8000)
    low = (low & np.uint64((1 << 62) - 1)) | np.uint64(1 << 63)
    out[at] = 34
    at += 1
    for n in range(32):
        if n == 8 or n == 12 or n == 16 or n == 20:
            out[at] = 45
            at += 1
        half = high if n < 16 else low
        digit = np.int64((half >> np.uint64(60 - 4 * (n % 16))) & np.uint64(15))
        out[at] = digit + (48 if digit < 10 else 87)
        at += 1
    out[at] = 34
    return at + 1


# ── all robots of a table ────────────────────────────────────────────────────────────────────────

AT_ONCE = 256
"""Messages in one piece of data."""


class StreamMessages:
    """The messages of the streams of a table. ``keys``: of the ids of the robots; ``plain``
    publishes a message of a robot (row, stream, time) in the plain way."""

    KINDS = ("heartbeat", "state", "telemetry")
    """Streams whose messages are written together."""

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
        self._streams = table.due.shape[1]
        self._battery = np.zeros(table.size)
        identities = [file.identity for file in table.files]
        pieces = Pieces()
        builds = [_build_of(table, row) for row in range(table.size)]
        known = list(dict.fromkeys(builds))
        templates = [each for build in known for each in TemplateMaker(build, pieces).templates()]
        own = [
            pieces.add(
                [
                    _encode(each.robot_id),
                    _encode(each.robot_code),
                    _encode(uuid_text(key, BOOT)),
                    *(BEGIN + subject(each.robot_id, kind).encode() for kind in self.KINDS),
                ]
            )
            for each, key in zip(identities, keys, strict=True)
        ]
        ends = np.cumsum([len(each) for each in templates], dtype=np.int64)
        places = {build: len(self.KINDS) * number for number, build in enumerate(known)}
        texts, starts = pieces.arrays()
        self._templates = Templates(
            np.array([field for each in templates for field in each], dtype=np.int64),
            np.column_stack([ends - [len(each) for each in templates], ends]),
            np.array([places[build] for build in builds], dtype=np.int64),
            texts,
            starts,
            np.array(own, dtype=np.int64),
        )
        self._numbers = np.zeros(AT_ONCE * max(map(len, templates)))
        self._bounds = np.zeros((AT_ONCE, 3), dtype=np.int64)
        sizes = np.diff(starts)
        longest_own = int(sizes[own[0] :].max())
        most = max(_most_bytes(each, sizes, longest_own) for each in templates)
        self._out = np.zeros(AT_ONCE * most + WORD, dtype=np.uint8)

    def publish(self, due: Rows, now: int) -> None:
        """Publishes the messages that are due (robot · number of streams + stream, ascending), in
        this order."""
        sound = find_sound(self._table, slice(None))
        rows, streams = np.divmod(due, self._streams)
        together = sound[rows] & (streams < len(self.KINDS))
        measured = np.zeros(sound.size, dtype=np.bool_)
        measured[rows[streams == TELEMETRY]] = True
        values = self._values(np.unique(rows), sound, measured)
        shared = [_encode(self._queue.timestamp(now)), _encode(seconds(now))]
        shared.append(_encode(self._queue.given_up))
        for first in range(0, due.size, AT_ONCE):
            chunk = slice(first, first + AT_ONCE)
            self._publish(due[chunk], together[chunk], values, shared, now)

    def _publish(
        self, due: Rows, together: Flags, values: Values, shared: Sequence[bytes], now: int
    ) -> None:
        """Messages that are written together, and plain ones between them."""
        written = self._written(due[together], values, shared)
        first = 0
        for place in np.flatnonzero(~together).tolist():
            end = int(np.count_nonzero(together[:place]))
            if end > first:
                self._queue.send_newest(written[first:end])
            first = end
            row, stream = divmod(int(due[place]), self._streams)
            self._plain(row, stream, now)
        if len(written) > first:
            self._queue.send_newest(written[first:] if first else written)

    def _written(self, due: Rows, values: Values, shared: Sequence[bytes]) -> PackedMessages:
        table = self._table
        count = collect_numbers(
            due, self._streams, self._templates, table.motor_spans, values, self._numbers
        )
        size = write_messages(
            due,
            self._streams,
            self._templates,
            table.motor_spans,
            table.input_spans,
            values,
            readable(_encode(self._numbers[:count].tolist())),
            readable(b"".join(shared)),
            starts_of(shared),
            self._keys,
            table.sent,
            table.beats,
            self._out,
            self._bounds,
        )
        return PackedMessages(self._out[:size].tobytes(), self._bounds[: due.size].copy())

    def _values(self, rows: Rows, sound: Flags, measured: Flags) -> Values:
        """What the messages of these robots show. ``measured``: those whose telemetry is due."""
        table = self._table
        self._battery[rows] = self._hardware.read_robots(table.robots[rows]).battery_percent
        nearest = find_nearest(table, self._hardware, measured)
        return Values(
            pose=table.pose,
            speeds=table.speeds,
            battery=self._battery,
            position=table.position,
            rolling=table.rolling,
            nearest=nearest,
            status=table.status,
            estop=table.estop,
            stop=table.stop,
            localization=find_localizations(table),
            near=(nearest <= table.warn_distance) | table.blocked,
            lidar_up=table.lidar_up,
            working=find_working(table, self._hardware, sound),
            connected=table.connected,
            modes=find_modes(table, rows),
            inputs=self._hardware.io.read_inputs(table.inputs),
        )


def _most_bytes(template: Sequence[Field], sizes: Rows, longest_own: int) -> int:
    """Most bytes of a message, with its address and its size."""
    found = 3 * UUID_SIZE + longest_own
    for field in template:
        found += int(sizes[field.before])
        found += longest_own if field.what == OWN else UUID_SIZE
    return found


def _build_of(table: Table, row: int) -> Build:
    file = table.files[row]
    motors = tuple(motor.motor_id for motor in file.motors)
    inputs = tuple(table.input_ids[row])
    return Build(motors, inputs, marker_of(file), file.identity.firmware_version or "")
