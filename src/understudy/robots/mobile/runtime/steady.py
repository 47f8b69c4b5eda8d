"""The steady messages of all robots of a table: heartbeat, state, telemetry, written in one pass.

A compiled loop writes the messages that are due at a tick into one buffer, from the pieces of
`templates` and from values in two flat columns, numbers and codes of words. The bytes are those of
the plain messages of `reports`. A robot with a fault sends plain messages: these list its faults.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from understudy.ports import WireMessage
from understudy.robots.mobile.hardware_interface import Rows, TimedHardware
from understudy.robots.mobile.runtime.ids import BOOT, RobotKey, uuid_text
from understudy.robots.mobile.runtime.json_text import (
    LONGEST_NUMBER,
    POWERS,
    put_bytes,
    put_integer,
    put_number,
    put_uuid,
)
from understudy.robots.mobile.runtime.messages import subject
from understudy.robots.mobile.runtime.post import Post
from understudy.robots.mobile.runtime.reports import (
    find_localizations,
    find_modes,
    find_sound,
    find_working,
    marker_of,
)
from understudy.robots.mobile.runtime.table import HEARTBEAT, STATE, TELEMETRY, UNLIMITED, Table
from understudy.robots.mobile.runtime.templates import (
    CONSTANT,
    DISTANCE,
    MESSAGE_ID,
    OWN,
    SHARED,
    WORD,
    Build,
    Templates,
    Words,
    code_columns,
    number_columns,
)
from understudy.space.compiled import compiled
from understudy.units import seconds

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]

QUOTE = ord('"')
NULL = tuple(b"null")
LONGEST_TEXT = 40
"""Bytes of a time stamp, an id or a count."""
KINDS = {HEARTBEAT: "heartbeat", STATE: "state", TELEMETRY: "telemetry"}


# ── the kernel ──────────────────────────────────────────────────────────────────────────────────


class Text(NamedTuple):
    """Templates and words as arrays. `template`: of each robot."""

    template: Rows
    spans: Rows
    pieces: Rows
    pool: Bytes
    words: Rows
    own: Rows


class Values(NamedTuple):
    """`keys`: of the ids of the robots; `sent` and `beats`: their messages and heartbeats so far.
    `shared`, `shared_spans`: texts of this tick."""

    numbers: Floats
    codes: Rows
    first_motor: Rows
    keys: NDArray[np.uint64]
    sent: Rows
    beats: Rows
    shared: Bytes
    shared_spans: Rows


@compiled
def write_messages(  # kernel
    due: Rows, columns: int, plain: NDArray[np.bool_], text: Text, values: Values,
    powers: NDArray[np.uint64], out: Bytes, ends: Rows,
) -> None:  # fmt: skip
    """Writes the messages that are ``due`` (robot · columns + stream) one after the other;
    ``ends``: the place after each. Those of ``plain`` robots and of other streams stay empty."""
    template, spans, pieces, pool, words, own = text
    numbers, codes, first_motor, keys, sent, beats, shared, shared_spans = values
    bits = numbers.view(np.uint64)
    at = 0
    for n in range(due.size):
        row, stream = due[n] // columns, due[n] % columns
        if plain[row] or stream >= spans.shape[1]:
            ends[n] = at
            continue
        sent[row] += 1
        for p in range(spans[template[row], stream, 0], spans[template[row], stream, 1]):
            kind, a = pieces[p, 0], pieces[p, 1]
            if kind == CONSTANT:
                at = put_bytes(out, at, pool, a, pieces[p, 2])
            elif kind <= WORD:
                index = a + pieces[p, 2] * row + pieces[p, 3] * first_motor[row]
                if kind == WORD:
                    word = pieces[p, 4] + codes[index]
                    at = put_bytes(out, at, pool, words[word, 0], words[word, 1])
                elif kind == DISTANCE and numbers[index] >= UNLIMITED:
                    for letter in NULL:
                        out[at] = letter
                        at += 1
                else:
                    at = put_number(out, at, bits[index], powers)
            elif kind == OWN:
                at = put_bytes(out, at, pool, own[row, a, 0], own[row, a, 1])
            elif kind == SHARED:
                at = put_bytes(out, at, shared, shared_spans[a, 0], shared_spans[a, 1])
            elif kind == MESSAGE_ID:
                out[at] = QUOTE
                at = put_uuid(out, at + 1, keys[row, 0], keys[row, 1], sent[row])
                out[at] = QUOTE
                at += 1
            else:
                beats[row] += 1
                at = put_integer(out, at, beats[row])
        ends[n] = at


# ── the messages of a table ─────────────────────────────────────────────────────────────────────


class SteadyMessages:
    """``keys``: of the ids of the robots; ``plain`` publishes a message of a robot (row, stream,
    time) in the plain way."""

    def __init__(
        self, table: Table, hardware: TimedHardware, post: Post, keys: Sequence[RobotKey],
        plain: Callable[[int, int, int], None],
    ) -> None:  # fmt: skip
        robots, motors = table.size, table.motors.size
        self._table = table
        self._hardware = hardware
        self._post = post
        self._plain = plain
        self._columns = number_columns(robots, motors)
        self._code_columns = code_columns(robots, motors)
        words = Words()
        templates = Templates(words, self._columns, self._code_columns)
        template = [templates.of(build_of(table, row)) for row in range(robots)]
        own = [_own_texts(table, row, key, words) for row, key in enumerate(keys)]
        self._text = Text(
            np.array(template, dtype=np.int64), np.array(templates.spans, dtype=np.int64),
            np.array(templates.pieces, dtype=np.int64), _as_bytes(bytes(words.pool)),
            np.array(words.spans, dtype=np.int64), np.array(own, dtype=np.int64),
        )  # fmt: skip
        self._numbers = np.zeros(8 * robots + 2 * motors)
        self._codes = np.zeros(7 * robots + 2 * motors, dtype=np.int64)
        self._first_motor = np.ascontiguousarray(table.motor_spans[:, 0])
        self._keys = np.array(keys, dtype=np.uint64)
        self._width = table.due.shape[1]
        ids = [file.identity.robot_id for file in table.files]
        self._subjects = [
            subject(robot, KINDS[stream]) if stream in KINDS else ""
            for robot in ids
            for stream in range(self._width)
        ]
        self._longest = self._longest_messages()
        self._out = np.zeros(0, dtype=np.uint8)

    def _longest_messages(self) -> Rows:
        """Most bytes of the messages of each template and stream."""
        text = self._text
        own = int((text.own[..., 1] - text.own[..., 0]).max(initial=0))
        word = int((text.words[:, 1] - text.words[:, 0]).max(initial=0))
        sizes = np.full(len(text.pieces), max(own, word, LONGEST_NUMBER, LONGEST_TEXT))
        constant = text.pieces[:, 0] == CONSTANT
        sizes[constant] = (text.pieces[:, 2] - text.pieces[:, 1])[constant]
        before = np.concatenate([[0], np.cumsum(sizes)])
        found: Rows = before[text.spans[..., 1]] - before[text.spans[..., 0]]
        return found

    def publish(self, due: Rows, now: int) -> None:
        """Publishes the messages that are due (robot · columns + stream), in this order."""
        plain = self._fill()
        ends = np.zeros(due.size, dtype=np.int64)
        robots, streams = np.divmod(due, self._width)
        steady = streams < len(KINDS)
        most = int(self._longest[self._text.template[robots[steady]], streams[steady]].sum())
        if self._out.size < most:
            self._out = np.zeros(2 * most, dtype=np.uint8)
        write_messages(
            due, self._width, plain, self._text, self._values(now), POWERS, self._out, ends
        )
        data = self._out[: ends[-1]].tobytes()
        begin = 0
        for number, end in zip(due.tolist(), ends.tolist(), strict=True):
            if end == begin:
                row, stream = divmod(number, self._width)
                self._plain(row, stream, now)
            else:
                self._post.send_steady(WireMessage(self._subjects[number], data[begin:end]))
            begin = end

    def _values(self, now: int) -> Values:
        table = self._table
        texts = [
            msgspec.json.encode(each)
            for each in (self._post.timestamp(now), self._post.given_up, seconds(now))
        ]
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        spans = np.column_stack([np.concatenate([[0], ends[:-1]]), ends])
        return Values(
            self._numbers, self._codes, self._first_motor, self._keys, table.sent, table.beats,
            _as_bytes(b"".join(texts)), np.ascontiguousarray(spans),
        )  # fmt: skip

    def _fill(self) -> NDArray[np.bool_]:
        """Copies what the messages show into the flat columns; returns which robots need plain
        messages."""
        table, hardware, columns, codes = (
            self._table, self._hardware, self._columns, self._code_columns,
        )  # fmt: skip
        robots, motors = slice(0, table.size), slice(0, table.motors.size)
        sound = find_sound(table, robots)
        numbers = {
            columns.pose: table.pose, columns.speeds: table.speeds,
            columns.battery: hardware.read_robots(table.robots).battery_percent,
            columns.nearest: table.nearest, columns.position: table.position,
            columns.rolling: table.rolling,
        }  # fmt: skip
        for column, values in numbers.items():
            column.view(self._numbers, len(values))[...] = values
        words = {
            codes.status: np.maximum(table.status, 0), codes.stop: table.stop,
            codes.estop: table.estop, codes.localization: find_localizations(table),
            codes.near: (table.nearest <= table.warn_distance) | table.blocked,
            codes.lidar_up: table.lidar_up, codes.working: find_working(table, hardware, sound),
            codes.connected: table.connected, codes.mode: find_modes(table, robots, motors),
        }  # fmt: skip
        for column, values in words.items():
            column.view(self._codes, len(values))[...] = values
        if np.isfinite(self._numbers).all():
            return ~sound
        return np.ones(table.size, dtype=np.bool_)


def build_of(table: Table, row: int) -> Build:
    file = table.files[row]
    motors = tuple(motor.motor_id for motor in file.motors)
    return Build(motors, marker_of(file), file.identity.firmware_version or "")


def _own_texts(table: Table, row: int, key: RobotKey, words: Words) -> list[tuple[int, int]]:
    identity = table.files[row].identity
    texts = identity.robot_id, identity.robot_code, uuid_text(key, BOOT)
    return [words.add(msgspec.json.encode(text)) for text in texts]


def _as_bytes(data: bytes) -> Bytes:
    return np.frombuffer(data, dtype=np.uint8).copy()
