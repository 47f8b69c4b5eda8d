"""The streams and the consumer of a cell: made if they are missing; a stream is never changed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from understudy.errors import UNREADABLE, ConfigError
from understudy.units import NS_PER_SECOND
from understudy.wire.nats import DEFAULT_MAX_AGE_S, DUPLICATE_WINDOW_S, Config

if TYPE_CHECKING:
    from understudy.wire.nats.link import NatsClient

FROM_ROBOTS = (
    "heartbeat",
    "state",
    "telemetry",
    "events",
    "settings.reported",
    "command.ack",
    "task.progress",
    "task.done",
    "task.failed",
    "traffic.state",
    "route.request",
)
TO_ROBOTS = (
    "command.request",
    "settings.desired",
    "task.assign",
    "task.cancel",
    "traffic.control",
    "route.response",
)
"""Subjects after `robot.{robotId}.`: listed one by one, since two streams must not overlap."""

KEPT_SUBJECT = "understudy.kept"
"""Begin of the subjects of the records that cells keep for their next start."""
MOST_KEPT = 100_000
MAX_CONSUMERS = 1000
MAX_PULLS = 16
"""Requests for messages that wait at the server: of one cell, and of one that has just ended."""
API = "$JS.API"
CELLS = "understudy"
"""Begin of the names of consumers that cells choose by themselves."""
MOST_CELLS = 8
"""Cells among which one with the same robots is looked for."""
STREAM_NOT_FOUND, CONSUMER_NOT_FOUND = 10059, 10014
NO_PEERS, UNAVAILABLE = 10005, 503
"""A cluster that is just starting, or chooses a leader, refuses for the moment: the code of the
error that too few servers are there, and the status of the others."""


class ApiError(Struct):
    """What JetStream refuses, and why."""

    code: int = 0
    err_code: int = 0
    description: str = ""

    @property
    def temporary(self) -> bool:
        return self.code == UNAVAILABLE or self.err_code == NO_PEERS


class StreamState(Struct, frozen=True):
    """What a stream has stored: number of messages, and the sequence of the first and last one."""

    messages: int = 0
    first_seq: int = 0
    last_seq: int = 0


class JetStreamAnswer(Struct):
    """An answer of JetStream: the settings that an object has now, or an error. `consumers`: the
    names of some, as a page of a list."""

    config: dict[str, Any] = {}
    state: StreamState = StreamState()
    created: str = ""
    error: ApiError | None = None
    num_waiting: int = 0
    name: str = ""
    num_pending: int = 0
    consumers: list[str] | None = None


class JetStreamError(ConnectionError):
    """JetStream refuses or does not answer; the connection is made anew later."""


class NoAnswerError(JetStreamError):
    """JetStream does not answer in time: it is away, or a cluster chooses a leader."""


class StreamDiffersError(ConfigError):
    """A stream of the server is not as the cell needs it."""


class StreamMarks:
    """How far the streams of a cell had come. A server whose machine lost its power, or whose
    store was restored, may know less; then the cell says it, and announces its state again."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._created: dict[str, str] = {}
        self._looked: dict[str, int] = {}
        """Sequence of a message that a stream had when it was looked at, or confirmed since."""
        self._own: set[str] = set()
        """Streams to which this cell has sent: they do not become empty by age while it runs."""
        self.losses: list[str] = []
        """What was lost and is not announced yet."""

    def confirmed(self, stream: str, sequence: int) -> None:
        """The server has stored a message of this cell."""
        self._last[stream] = max(self._last.get(stream, 0), sequence)
        self._looked[stream] = self._looked.get(stream, 0) or sequence
        self._own.add(stream)

    def last(self, stream: str) -> int:
        """Sequence of the last message that the stream had; 0 if none is known."""
        return self._last.get(stream, 0)

    def found(self, stream: str, created: str, state: StreamState, last: int) -> None:
        """Compares a stream with what is known of it. ``last``: of it when it was asked for."""
        if created != self._created.get(stream, created):
            self.losses.append(f"stream {stream} was made anew")
        elif state.last_seq < last:
            self.losses.append(f"stream {stream} went back from message {last} to {state.last_seq}")
        elif stream in self._own and 0 < self._looked.get(stream, 0) < state.first_seq:
            self.losses.append(f"stream {stream} was emptied")
        else:
            state = msgspec.structs.replace(state, last_seq=max(state.last_seq, self.last(stream)))
        self._created[stream], self._last[stream] = created, state.last_seq
        self._looked[stream] = state.last_seq

    def missing(self, stream: str) -> None:
        if stream in self._created:
            self.losses.append(f"stream {stream} has vanished; it is made again")
            del self._created[stream]
            self._last.pop(stream, None)
            self._looked.pop(stream, None)

    def take(self) -> list[str]:
        losses, self.losses = self.losses, []
        return losses


async def ask(client: "NatsClient", subject: str, request: Any, within: float) -> JetStreamAnswer:
    """Sends a request to JetStream's API."""
    try:
        reply = await client.request(f"{API}.{subject}", msgspec.json.encode(request), within)
        return msgspec.json.decode(reply.data, type=JetStreamAnswer)
    except TimeoutError:
        raise NoAnswerError(f"JetStream gave no answer to {subject} in {within:g} s") from None
    except UNREADABLE as problem:
        raise JetStreamError(f"the answer of JetStream to {subject}: {problem}") from None
    except NoRespondersError:
        raise JetStreamError("the server has no JetStream") from None
    except NatsError as problem:
        raise JetStreamError(str(problem) or type(problem).__name__) from None


# ── streams ─────────────────────────────────────────────────────────────────────────────────────


def wanted_streams(config: Config) -> list[dict[str, Any]]:
    """The settings of both streams, as they are made."""
    both = ((config.stream_in, FROM_ROBOTS), (config.stream_out, TO_ROBOTS))
    return [
        {
            "name": name,
            "subjects": [f"robot.*.{subject}" for subject in subjects],
            "retention": "limits",
            "storage": "file",
            "discard": "old",
            "max_age": (config.max_age_s or DEFAULT_MAX_AGE_S) * NS_PER_SECOND,
            "max_bytes": config.stream_mb << 20,
            "max_msgs": -1,
            "max_consumers": MAX_CONSUMERS,
            "duplicate_window": DUPLICATE_WINDOW_S * NS_PER_SECOND,
            "num_replicas": config.replicas,
        }
        for name, subjects in both
    ]


async def ensure_streams(
    client: "NatsClient", config: Config, marks: StreamMarks | None = None
) -> list[str]:
    """Makes the streams that are missing; returns how those that exist differ. ``marks`` are
    compared with what the server has."""
    marks = StreamMarks() if marks is None else marks
    problems: list[str] = []
    for wanted in wanted_streams(config):
        name, timeout = wanted["name"], config.answer_timeout_s
        last = marks.last(name)
        answer = await ask(client, f"STREAM.INFO.{name}", {}, timeout)
        if answer.error is not None and answer.error.err_code == STREAM_NOT_FOUND:
            marks.missing(name)
            answer = await ask(client, f"STREAM.CREATE.{name}", wanted, timeout)
            if answer.error is None:
                marks.found(name, answer.created, answer.state, 0)
            else:
                problem = f"stream {name} cannot be made: {answer.error.description}"
                if answer.error.temporary:
                    raise JetStreamError(problem)
                problems.append(problem)
            continue
        if answer.error is not None:
            raise JetStreamError(f"stream {name}: {answer.error.description}")
        marks.found(name, answer.created, answer.state, last)
        found = differences(wanted, answer.config, config)
        problems += [f"stream {name}: {difference}" for difference in found]
    return problems


def differences(wanted: dict[str, Any], found: dict[str, Any], config: Config) -> list[str]:
    """What delivery needs and the cell file gives, but the stream has not; in plain words."""
    problems = []
    subjects = found.get("subjects") or []
    missing = [s for s in wanted["subjects"] if not any(covers(each, s) for each in subjects)]
    if missing:
        problems.append(f"it has no subject {', '.join(missing)}")
    if found.get("retention", "limits") != "limits":
        problems.append(f"retention is {found['retention']}, needed is limits")
    window = found.get("duplicate_window", 0)
    if window < wanted["duplicate_window"]:
        problems.append(
            f"duplicate_window is {window / NS_PER_SECOND:g} s, needed are {DUPLICATE_WINDOW_S} s"
        )
    replicas = found.get("num_replicas", 1)
    if replicas < config.replicas:
        problems.append(f"it has {replicas} replicas, the cell file says {config.replicas}")
    if config.max_age_s is not None and found.get("max_age", 0) != wanted["max_age"]:
        age = found.get("max_age", 0) / NS_PER_SECOND
        problems.append(f"max_age is {age:g} s, the cell file says {config.max_age_s} s")
    if config.max_mb is not None and found.get("max_bytes", -1) != wanted["max_bytes"]:
        size = found.get("max_bytes", -1)
        problems.append(f"max_bytes is {size}, the cell file says {wanted['max_bytes']}")
    return problems


# ── records for the next start ──────────────────────────────────────────────────────────────────


def kept_subject(config: Config) -> str:
    """Begin of the subjects of this cell's records; behind it are a point and a name."""
    return f"{KEPT_SUBJECT}.{config.durable}"


async def ensure_kept(client: "NatsClient", config: Config) -> None:
    """Makes the stream of the records if it is missing. JetStreamError: it cannot be used."""
    name, timeout = config.stream_kept, config.answer_timeout_s
    subject = f"{KEPT_SUBJECT}.>"
    answer = await ask(client, f"STREAM.INFO.{name}", {}, timeout)
    if answer.error is not None and answer.error.err_code == STREAM_NOT_FOUND:
        wanted = {
            "name": name,
            "subjects": [subject],
            "retention": "limits",
            "storage": "file",
            "discard": "old",
            "max_age": (config.max_age_s or DEFAULT_MAX_AGE_S) * NS_PER_SECOND,
            "max_bytes": config.kept_mb << 20,
            "max_msgs": MOST_KEPT,
            "max_msgs_per_subject": 1,
            "duplicate_window": DUPLICATE_WINDOW_S * NS_PER_SECOND,
            "num_replicas": config.replicas,
        }
        answer = await ask(client, f"STREAM.CREATE.{name}", wanted, timeout)
    if answer.error is not None:
        raise JetStreamError(f"stream {name}: {answer.error.description}")
    if not any(covers(each, subject) for each in answer.config.get("subjects") or []):
        raise JetStreamError(f"stream {name}: it has no subject {subject}")


async def read_kept(client: "NatsClient", config: Config) -> list[tuple[str, bytes]]:
    """The records of this cell with their names, in the order in which they were stored."""
    timeout, begin = config.answer_timeout_s, f"{kept_subject(config)}."
    settings = {
        "deliver_policy": "all",
        "ack_policy": "none",
        "replay_policy": "instant",
        "filter_subject": f"{begin}>",
        "mem_storage": True,
        "num_replicas": 1,
        "inactive_threshold": round(timeout * NS_PER_SECOND),
    }
    request = {"stream_name": config.stream_kept, "config": settings}
    reader = await ask(client, f"CONSUMER.CREATE.{config.stream_kept}", request, timeout)
    if reader.error is not None:
        raise JetStreamError(f"stream {config.stream_kept}: {reader.error.description}")
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox)
    found: list[tuple[str, bytes]] = []
    if reader.num_pending:
        asked = {"batch": reader.num_pending, "no_wait": True}
        subject = f"{API}.CONSUMER.MSG.NEXT.{config.stream_kept}.{reader.name}"
        await client.publish(subject, msgspec.json.encode(asked), inbox)
    while len(found) < reader.num_pending:
        try:
            message = await answers.next_msg(timeout)
        except NatsError as problem:
            raise JetStreamError(f"stream {config.stream_kept}: {problem!r}") from None
        if not message.subject.startswith(begin):
            break  # there are fewer now
        found.append((message.subject.removeprefix(begin), message.data))
    await answers.unsubscribe()
    return found


def covers(pattern: str, subject: str) -> bool:
    """Whether every message to ``subject`` fits ``pattern``; both may have wildcards."""
    parts, tokens = pattern.split("."), subject.split(".")
    for place, part in enumerate(parts):
        if part == ">":
            return len(tokens) > place
        if place >= len(tokens) or tokens[place] == ">":
            return False
        if part not in ("*", tokens[place]):
            return False
    return len(parts) == len(tokens)


# ── the consumer ────────────────────────────────────────────────────────────────────────────────


async def ensure_consumer(client: "NatsClient", config: Config, addresses: Sequence[str]) -> bool:
    """Makes the cell's consumer, or sets its addresses and bounds anew; true if another process
    takes messages from it."""
    where = f"{config.stream_out}.{config.durable}"
    timeout = config.answer_timeout_s
    wanted = {
        "filter_subjects": list(addresses),
        "ack_wait": round(config.ack_wait_s * NS_PER_SECOND),
        "max_ack_pending": config.max_ack_pending,
        "max_waiting": MAX_PULLS,
    }
    found = await ask(client, f"CONSUMER.INFO.{where}", {}, timeout)
    if found.error is None:
        has = found.config | {"filter_subjects": _filters(found.config)}
        if all(has.get(key) == value for key, value in wanted.items()):
            return found.num_waiting > 0
        has.pop("filter_subject", None)
        settings, action = has | wanted, "update"
    elif found.error.err_code == CONSUMER_NOT_FOUND:
        settings, action = _fresh(config) | wanted, "create"
    else:
        raise JetStreamError(f"consumer {where}: {found.error.description}")
    request = {"stream_name": config.stream_out, "config": settings, "action": action}
    answer = await ask(client, f"CONSUMER.CREATE.{where}", request, timeout)
    if answer.error is not None:
        raise JetStreamError(f"consumer {where} cannot be made: {answer.error.description}")
    return found.num_waiting > 0


async def find_rival(client: "NatsClient", config: Config, addresses: Sequence[str]) -> str:
    """The consumer of another cell that takes messages to the same addresses at this moment; empty
    if there is none. Consumers of other programs, which may listen too, are not looked at, and none
    where there are many cells: the answers would be long."""
    timeout, wanted = config.answer_timeout_s, set(addresses)
    listed = await ask(client, f"CONSUMER.NAMES.{config.stream_out}", {}, timeout)
    others = [name for name in listed.consumers or () if name.startswith(CELLS)]
    for name in others if len(others) <= MOST_CELLS else ():
        found = await ask(client, f"CONSUMER.INFO.{config.stream_out}.{name}", {}, timeout)
        taken = found.num_waiting > 0 and wanted.intersection(_filters(found.config))
        if taken and name != config.durable:
            return name
    return ""


async def is_gone(client: "NatsClient", config: Config) -> bool:
    """Whether the cell's consumer does not exist any more. While a cluster chooses a leader for it,
    it exists, but no server answers requests to it."""
    where = f"{config.stream_out}.{config.durable}"
    try:
        answer = await ask(client, f"CONSUMER.INFO.{where}", {}, config.answer_timeout_s)
    except NoAnswerError:
        return False
    return answer.error is not None and answer.error.err_code in (
        STREAM_NOT_FOUND,
        CONSUMER_NOT_FOUND,
    )


def _filters(settings: dict[str, Any]) -> list[str]:
    one = settings.get("filter_subject")
    return [one] if one else settings.get("filter_subjects") or []


def _fresh(config: Config) -> dict[str, Any]:
    return {
        "name": config.durable,
        "durable_name": config.durable,
        "deliver_policy": config.deliver,
        "ack_policy": "explicit",
        "replay_policy": "instant",
        "max_deliver": -1,
    }
