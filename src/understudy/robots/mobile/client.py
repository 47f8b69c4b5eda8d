"""Client of a fleet on NATS, for commands and tests: no call waits without a deadline.

The connection is kept by a thread of its own, so that the caller needs no asyncio. A lost
connection is not opened again: the next call raises `NoAnswerError`.
"""

import asyncio
import contextlib
import json
import queue
import threading
import uuid
from collections.abc import Collection, Coroutine, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from understudy.errors import ConfigError, NotInstalledError, needs
from understudy.robots.mobile.runtime.messages import (
    PAYLOAD_VERSION,
    MoveVelocity,
    command_kind,
    kind_of,
    subject,
)
from understudy.wire.nats import load_library

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js.client import JetStreamContext

TIMEOUT_S = 5.0
POLL_S = 0.005
BATCH = 200
"""Messages that are read at a time."""
FETCH_S = 2.0
ALL = "*"
MESSAGE_ID = "Nats-Msg-Id"
ENDS = ("DONE", "REJECTED", "FAILED", "CANCELED")
"""The last status of a command."""
Result = TypeVar("Result")


def last_statuses(command_type: str, parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """The statuses after which no other is awaited: a MOVE_VELOCITY without a duration runs until
    the next command."""
    kind = command_kind(command_type)
    drives_on = kind is not None and kind.parameters is MoveVelocity
    return (*ENDS, "RUNNING") if drives_on and "durationSeconds" not in parameters else ENDS


class NoAnswerError(ConfigError):
    """The server or a robot does not answer."""


class FleetMessage(NamedTuple):
    """A message of a robot; ``text`` is the whole of it as it came."""

    robot: str
    kind: str
    correlation_id: str
    payload: dict[str, Any]
    text: str


class Inbox:
    """Messages of robots in the order in which they came, from the moment it was made."""

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[FleetMessage | None] = queue.SimpleQueue()
        self._lost = False

    def put(self, message: FleetMessage | None) -> None:
        """None: the connection is lost."""
        self._messages.put(message)

    def take(self, timeout_s: float) -> FleetMessage | None:
        """The next message; None if there is none in time."""
        if self._lost:
            raise NoAnswerError("the connection to the NATS server is lost")
        try:
            found = self._messages.get(timeout=max(0.0, timeout_s))
        except queue.Empty:
            return None
        if found is None:
            self._lost = True
            return self.take(0.0)
        return found


class FleetClient:
    """A backend's side of the messages; use it in a `with` statement.

    ``server``: `nats://host:port`, also `nats://token@host:port` or `nats://user:password@host`.
    """

    def __init__(
        self, server: str, *, creds: Path | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        if find_spec("nats") is None:
            raise NotInstalledError(f"a client of mobile robots {needs('nats-py')}")
        self.server = server
        self._creds = creds
        self._timeout = timeout_s
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="fleet client", daemon=True
        )
        self._nats: Client | None = None
        self._sent = ("", 0)
        """Stream and sequence number of the last message."""
        self._problem = ""
        """What nats-py has reported last."""
        self._inboxes: list[Inbox] = []

    # ── start and end ──

    def __enter__(self) -> "FleetClient":
        self._thread.start()
        try:
            self._nats = self._call(self._connected())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        if self._nats is not None:
            with contextlib.suppress(NoAnswerError):
                self._call(self._nats.close())
        self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(self._timeout)
        self._loop.close()

    async def _connected(self) -> "Client":
        load_library()
        from nats.aio.client import Client

        client = Client()
        try:
            await client.connect(
                self.server,
                name="understudy fleet",
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=max(1, round(self._timeout)),
                error_cb=self._failed,
                disconnected_cb=self._lost,
                closed_cb=self._lost,
                user_credentials=None if self._creds is None else str(self._creds),
            )
        except BaseException:
            await client.close()
            raise
        return client

    async def _failed(self, problem: Exception) -> None:
        self._problem = str(problem) or type(problem).__name__

    async def _lost(self) -> None:
        for inbox in self._inboxes:
            inbox.put(None)

    def _call(self, action: Coroutine[Any, Any, Result]) -> Result:
        """The result of an action of the thread; `NoAnswerError` says why there is none."""
        from nats.errors import Error
        from nats.js.errors import NoStreamResponseError

        waiting = asyncio.run_coroutine_threadsafe(
            asyncio.wait_for(action, self._timeout), self._loop
        )
        try:
            return waiting.result(2 * self._timeout)
        except NoStreamResponseError:
            raise NoAnswerError(
                f"{self.server}: no stream takes this message: no cell with mobile robots uses "
                "this server"
            ) from None
        except TimeoutError:
            raise NoAnswerError(f"{self.server}: no answer in {self._timeout:g} s") from None
        except (Error, OSError, ValueError) as problem:
            said = self._problem or str(problem) or type(problem).__name__
            raise NoAnswerError(f"NATS server {self.server}: {said}") from None

    def _connection(self) -> "Client":
        if self._nats is None:
            raise RuntimeError("use the client in a `with` statement")
        return self._nats

    # ── messages ──

    def listen(self, *kinds: str, robot: str = ALL) -> Inbox:
        """Receives messages of a robot or of all from now on; without kinds: of all kinds."""
        inbox = Inbox()

        async def received(message: "Msg") -> None:
            if (found := _read(message, kinds)) is not None:
                inbox.put(found)

        async def subscribe() -> None:
            connection = self._connection()
            # One subscription: messages of several ones would not come in their order.
            kind = kinds[0] if len(kinds) == 1 else ">"
            await connection.subscribe(subject(robot, kind), cb=received)
            await connection.flush(max(1, round(self._timeout)))

        self._call(subscribe())
        self._inboxes.append(inbox)
        return inbox

    def send(
        self,
        robot: str,
        kind: str,
        payload: Mapping[str, Any],
        *,
        message_id: str = "",
        correlation_id: str = "",
    ) -> str:
        """Sends a message to a robot; when it is stored, returns its id. The answers of the robot
        have it as their correlation id unless another is given."""
        name = message_id or str(uuid.uuid4())
        envelope = {
            "payloadVersion": PAYLOAD_VERSION,
            "messageId": name,
            "robotId": robot,
            "correlationId": correlation_id or name,
            "payload": payload,
        }
        data = json.dumps(envelope).encode()

        async def publish() -> None:
            streams = self._connection().jetstream(timeout=self._timeout)
            stored = await streams.publish(subject(robot, kind), data, headers={MESSAGE_ID: name})
            self._sent = (stored.stream, stored.seq)

        self._call(publish())
        return name

    def wait_handled(self) -> None:
        """Returns when the robot has handled the message that was sent last."""
        stream, sequence = self._sent

        async def look() -> None:
            streams = self._connection().jetstream(timeout=self._timeout)
            while True:
                consumers = await streams.consumers_info(stream)
                reached = [each.ack_floor.stream_seq for each in consumers if each.ack_floor]
                if reached and min(reached) >= sequence:
                    return
                await asyncio.sleep(POLL_S)

        self._call(look())

    def flush(self) -> None:
        """Returns when everything has come that the server had until now."""
        self._call(self._connection().flush(max(1, round(self._timeout))))

    def robots(self) -> list[str]:
        """The robots that have sent their state to this server, by name."""

        async def ask() -> list[str]:
            streams = self._connection().jetstream(timeout=self._timeout)
            states = subject(ALL, "state")
            stream = await _stream_of(streams, states)
            if not stream:
                return []
            about = await streams.stream_info(stream, subjects_filter=states)
            return sorted(kind_of(each)[0] for each in about.state.subjects or {})

        return self._call(ask())

    def recent(self, *kinds: str) -> list[FleetMessage]:
        """The last message of each of these kinds of each robot that the server has stored, in the
        order in which they came."""

        async def ask() -> list[FleetMessage]:
            streams = self._connection().jetstream(timeout=self._timeout)
            stream = await _stream_of(streams, subject(ALL, kinds[0]))
            found = await _last_messages(streams, stream, kinds) if stream else []
            return [each for message in found if (each := _read(message, kinds)) is not None]

        return self._call(ask())


async def _stream_of(streams: "JetStreamContext", subject: str) -> str:
    """The name of the stream that stores these messages; empty if there is none."""
    from nats.js.errors import NotFoundError

    try:
        return await streams.find_stream_name_by_subject(subject)
    except NotFoundError:
        return ""


async def _last_messages(
    streams: "JetStreamContext", stream: str, kinds: Collection[str]
) -> "list[Msg]":
    """Reads the last messages by a consumer that is gone afterwards."""
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    config = ConsumerConfig(
        filter_subjects=[subject(ALL, kind) for kind in kinds],
        deliver_policy=DeliverPolicy.LAST_PER_SUBJECT,
        ack_policy=AckPolicy.NONE,
        inactive_threshold=TIMEOUT_S,
        mem_storage=True,
    )
    made = await streams.add_consumer(stream, config)
    reader = await streams.pull_subscribe_bind(consumer=made.name, stream=stream)
    found: list[Msg] = []
    with contextlib.suppress(TimeoutError):  # the server may have removed old ones meanwhile
        while (left := (made.num_pending or 0) - len(found)) > 0:
            found += await reader.fetch(min(BATCH, left), timeout=FETCH_S)
    await reader.unsubscribe()
    await streams.delete_consumer(stream, made.name)
    return found


def _read(message: "Msg", kinds: Collection[str]) -> FleetMessage | None:
    """A message of a robot of one of these kinds; None if it is something else."""
    robot, kind = kind_of(message.subject)
    if kinds and kind not in kinds:
        return None
    try:
        content = json.loads(message.data)
        cause = content.get("correlationId") or ""
        found = FleetMessage(robot, kind, str(cause), content["payload"], message.data.decode())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return found if isinstance(found.payload, dict) else None
