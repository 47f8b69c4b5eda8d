"""One connection to a NATS server, and the session behind it.

`NatsClient` is nats-py without its reconnecting, and with firm ends: nats-py ends a lost connection
with a wait for a peer that may take no more bytes, and a subject that is not UTF-8 ends its reading
without a word; both are replaced. `NatsClient.lost` is the reason as soon as the connection is of
no use. `NatsLink` carries what the session sends, what is confirmed, and what it receives.
"""

import asyncio
import contextlib
import itertools
import logging
import re
import ssl
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from nats.aio.client import PING_PROTO, Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from understudy.errors import UNREADABLE, ConfigError
from understudy.ports import (
    CONFIRMED,
    FORGOTTEN,
    KEPT,
    AnnouncesState,
    KeepsRecords,
    WireMessage,
)
from understudy.ports.packed import PackedMessages
from understudy.units import NS_PER_SECOND
from understudy.wire.broker import BrokerQueue
from understudy.wire.connection import Connection
from understudy.wire.interface import PeerEvents, words_of
from understudy.wire.nats import Config, Tls
from understudy.wire.nats.streams import (
    API,
    JetStreamError,
    StreamMarks,
    ask,
    ensure_kept,
    ensure_streams,
    is_gone,
    kept_subject,
    read_kept,
)
from understudy.wire.task_shutdown import end_tasks

log = logging.getLogger(__name__)

__all__ = ["NatsClient", "NatsError", "NatsLink", "connect", "shown"]

# ── the client ──────────────────────────────────────────────────────────────────────────────────

NEVER = 10**9
"""Seconds between the pings of nats-py: `answered` pings instead."""
LARGEST_BUFFER = 8 << 20
SLICES = 4
CLOSE_SECONDS = 1.0
MOST_SUBJECTS = 200_000
"""Subjects that are remembered: more than the steady messages of a process have."""
CREDENTIALS = (b"BEGIN NATS USER JWT", b"BEGIN USER NKEY SEED")
SEED = re.compile(rb"SU[A-Z2-7]{56}")
SUBJECT = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)
"""Subjects of steady messages; others are sent with `publish`."""
PERMISSIONS = "permissions violation"


class NatsClient(Client):
    """A client of nats-py for one connection."""

    def __init__(self, *, needs_tls: bool) -> None:
        super().__init__()
        self._needs_tls = needs_tls
        self._starts: dict[str, bytes] = {}
        """Subject → the first bytes of a message to it."""
        self.problem = ""
        """The last error that was not the end of the connection."""
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def give_up(self, reason: str) -> None:
        """The connection is of no use any more."""
        if not self.lost.done():
            self.lost.set_result(reason)

    async def answered(self, within: float) -> None:
        """Returns when the server has read everything that was sent; `lost` if it does not."""
        pong: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._pongs.append(pong)
        await self._send_command(PING_PROTO)
        await self._flush_pending()
        if not await is_done({pong, self.lost}, within):
            self.give_up(f"no answer within {within:g} s")
        if self.lost.done():
            raise ConnectionError(self.lost.result())

    async def leave(self, subscription: Subscription, within: float) -> None:
        """Ends a subscription; returns when all its messages have been given to their listener."""
        await self._send_unsubscribe(subscription._id)
        await self.answered(within)
        await asyncio.wait_for(subscription._pending_queue.join(), within)

    async def end(self) -> None:
        """Closes the connection without waiting for the peer to read."""
        self._pending.clear()
        self._pending_data_size = 0
        writer: Any = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self.close(), CLOSE_SECONDS)
        self.give_up("closed")

    async def note(self, problem: Exception) -> None:
        """`error_cb` of nats-py."""
        self.problem = str(problem) or type(problem).__name__

    def add_frame(self, frames: list[bytes], subject: str, payload: bytes) -> bool:
        """Adds the bytes of a message without reply address and headers, for `write`; false: it can
        only be sent with `publish`, which says what is wrong with it. A subject is checked and
        encoded once."""
        start = self._starts.get(subject)
        if start is None:
            if not SUBJECT.fullmatch(subject) or len(self._starts) >= MOST_SUBJECTS:
                return False
            start = self._starts[subject] = f"PUB {subject} ".encode()
        if len(payload) > self._max_payload:
            return False
        frames += (start, b"%d\r\n" % len(payload), payload, b"\r\n")
        return True

    async def write(self, data: bytes) -> None:
        """Sends frames; they leave with the next `answered`."""
        await self._send_command(data)

    # ── replaced parts of nats-py ──

    async def _process_op_err(self, e: Exception) -> None:
        self.give_up(str(e) or type(e).__name__)

    async def _process_err(self, err_msg: str) -> None:
        self.problem = err_msg.strip("' ")
        if PERMISSIONS not in self.problem.lower():
            self.give_up(self.problem)

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """The secret is sent after this: never to a server without TLS where TLS is wanted."""
        if initial_connection and self._needs_tls and not info.get("tls_required"):
            raise NatsError("the server offers no TLS")
        await super()._process_info(info, initial_connection)

    def _build_message(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None
    ) -> Msg:
        return Msg(
            _client=self,
            subject=subject.decode("utf-8", "replace"),
            reply=reply.decode("utf-8", "replace"),
            data=data,
            headers=headers,
            _sid=sid,
        )


async def is_done(either: set["asyncio.Future[Any]"], within: float) -> bool:
    """Waits until one of them is done; false if none is in time.

    The time is waited for in slices: if this process was busy for long, one slice is over before
    anything that has come meanwhile is read, but not all of them.
    """
    for _ in range(SLICES):
        done, _ = await asyncio.wait(either, timeout=within / SLICES, return_when="FIRST_COMPLETED")
        if done:
            return True
    return False


async def connect(config: Config, address: str) -> NatsClient:
    """A client that is connected to this address; `ConnectionError` with the reason if it cannot.

    ConfigError: a file of the credentials cannot be used.
    """
    scheme_tls = address.startswith("tls://")
    client = NatsClient(needs_tls=config.tls is not None or scheme_tls)
    secrets = _secrets(config)
    try:
        await asyncio.wait_for(
            client.connect(
                servers=[address],
                error_cb=client.note,
                name=f"understudy {config.durable}",
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=config.connect_timeout_s,  # type: ignore[arg-type]
                ping_interval=NEVER,
                pending_size=LARGEST_BUFFER,
                flush_timeout=config.answer_timeout_s,
                **secrets,
            ),
            2 * config.connect_timeout_s,
        )
    except (NatsError, OSError, TimeoutError, ValueError) as problem:
        reason = client.problem or str(problem) or type(problem).__name__
        await client.end()
        raise ConnectionError(reason.removeprefix("nats: ")) from None
    except BaseException:
        await client.end()
        raise
    assert client._reading_task is not None
    client._reading_task.add_done_callback(lambda task: client.give_up(_end_of(task)))
    return client


def shown(address: str) -> str:
    """An address without the user and password that it may have."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _end_of(task: asyncio.Task[None]) -> str:
    if task.cancelled() or task.exception() is None:
        return "the connection was closed"
    return str(task.exception())


def _secrets(config: Config) -> dict[str, Any]:
    """The keyword arguments of nats-py that carry credentials and TLS."""
    found: dict[str, Any] = {}
    if config.creds_file:
        text = _content(config.creds_file, "creds_file")
        if any(part not in text for part in CREDENTIALS):
            raise _unusable(config.creds_file, "creds_file", "a file with a user's JWT and seed")
        found["user_credentials"] = config.creds_file
    if config.nkey_file:
        if not SEED.fullmatch(_content(config.nkey_file, "nkey_file").strip()):
            raise _unusable(config.nkey_file, "nkey_file", "a file with a user's seed, SU…")
        found["nkeys_seed"] = config.nkey_file
    if config.token:
        found["token"] = config.token
    if config.tls is not None:
        found["tls"] = _context(config.tls)
        if config.tls.hostname:
            found["tls_hostname"] = config.tls.hostname
    return found


def _content(file: str, key: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as problem:
        raise ConfigError(
            f"the file cannot be read: {words_of(problem)}", key=f"nats.{key}", value=file
        ) from None


def _unusable(file: str, key: str, allowed: str) -> ConfigError:
    return ConfigError(
        "the file has no credentials", key=f"nats.{key}", value=file, allowed=allowed
    )


def _context(tls: Tls) -> ssl.SSLContext:
    for key in ("ca_file", "cert_file", "key_file"):
        if file := getattr(tls, key):
            _content(file, f"tls.{key}")
    try:
        context = ssl.create_default_context(cafile=tls.ca_file or None)
        if tls.cert_file:
            context.load_cert_chain(tls.cert_file, tls.key_file or None)
    except (OSError, ValueError) as problem:
        raise ConfigError(f"the certificates cannot be used: {problem}", key="nats.tls") from None
    return context


# ── the session behind the server ───────────────────────────────────────────────────────────────

BATCH = 1 << 20
"""Bytes that are sent before the server has to say that it has read them."""
OVERHEAD = 256
"""Bytes that a message costs beside its subject and payload."""
PULL = 64
"""Messages that are asked for at a time."""
PULL_SECONDS = 5.0
"""Time for which the server keeps a request for messages."""
PULL_HEARTBEAT_SECONDS = 1.0
"""So often the server says that it still has the request."""
PULL_SILENCE_SECONDS = 3.0
"""A request that the server does not mention for so long is lost: it is made again. In a cluster
the server that has a request may end while the connection, to another one, goes on."""
NO_LEADER_SECONDS = 0.2
"""Time between two requests while a cluster chooses a leader for the consumer."""
LARGEST_PULL = 4 << 20
"""Bytes of the messages of one request."""
GROWTH_SECONDS = 0.2
"""Time in which a stream grows if the server stores what it receives."""
CREDIT_SECONDS = 0.02
"""Time after which a session that had no credit is asked again."""
AT_ONCE = 256
"""Received messages that the session gets in one turn of the event loop."""
MOST_UNCONFIRMED = MOST_UNHANDLED = 10_000
NO_RESPONDERS = "503"
ENDS_OF_PULL = {"404", "408", "409", NO_RESPONDERS}
OWN = (CONFIRMED, KEPT, FORGOTTEN)
"""Addresses of messages that are not of the consumer."""
CONSUMER_GONE = ("consumer deleted", "consumer is push based")
NAK = b"-NAK"
PEER = "nats"


class PubAck(Struct):
    """JetStream's answer to a message that it stores."""

    error: dict[str, object] | None = None
    stream: str = ""
    seq: int = 0
    duplicate: bool = False


class NatsLink(BrokerQueue):
    """`Sink` of the one session behind the server."""

    def __init__(
        self,
        endpoint: str,
        client: NatsClient,
        config: Config,
        events: PeerEvents,
        unhandled: dict[str, None],
        *,
        recalled: bool = False,
        marks: StreamMarks | None = None,
    ) -> None:
        """``unhandled`` holds the addresses of acknowledgements that were not sent yet; those of
        the last connection are given back to the server. ``recalled``: the session has its records
        already. ``marks``: how far the streams had come."""
        super().__init__(OVERHEAD)
        self._marks = StreamMarks() if marks is None else marks
        self.endpoint = endpoint
        self._client = client
        self._config = config
        self._events = events
        self._connection: Connection | None = None
        self._queue: deque[tuple[WireMessage | bytes, str, int]] = deque()
        """Messages and where JetStream confirms them, or frames of many messages; sizes."""
        self._asked = 0
        """Messages that the server still may send for the last request."""
        self._pull_ended = asyncio.Event()
        self._pull_mentioned = False
        """Whether the server has said something about the last request lately."""
        self._pull_refused = False
        self._confirmations = client.new_inbox()
        self._pulls = client.new_inbox()
        self._numbers = itertools.count(1)
        self._unconfirmed: dict[str, tuple[str, float]] = {}
        """Reply address → message id, and the time when no confirmation is expected any more."""
        self._unhandled = unhandled
        self.recalled = recalled
        self.stores_nothing = False
        """The own server answers and stores nothing: after a write error it has to start again."""
        self._stored_at = asyncio.get_running_loop().time()
        self._lacks_stream = False
        """A message had a subject that no stream has."""
        self._problems: list[str] = []
        self._arrived: deque[WireMessage] = deque()
        """Messages and confirmations for the session, given to it together in the next turn."""
        self._finishing = False
        self._pull_subscription: Subscription | None = None
        self._progress = asyncio.Event()
        self._said = ""

    # ── sink ──

    def send(self, message: WireMessage) -> None:
        self._unhandled.pop(message.address, None)
        reply = ""
        if message.reply_to:
            reply = f"{self._confirmations}.{next(self._numbers)}"
            until = asyncio.get_running_loop().time() + self._config.answer_timeout_s
            self._unconfirmed[reply] = (message.reply_to, until)
            while len(self._unconfirmed) > MOST_UNCONFIRMED:
                del self._unconfirmed[next(iter(self._unconfirmed))]
        size = self._size(message)
        self._queue.append((message, reply, size))
        self._note_waiting(size)

    def send_many(self, messages: Sequence[WireMessage]) -> None:
        """Steady messages become one piece of data; others are sent one by one, in order."""
        if isinstance(messages, PackedMessages) and messages.largest <= self._client.max_payload:
            self._send_frames([messages.data])
            return
        frames: list[bytes] = []
        add, unhandled = self._client.add_frame, self._unhandled
        for message in messages:
            steady = not message.reply_to and message.address not in unhandled
            if not (steady and add(frames, message.address, message.payload)):
                self._send_frames(frames)
                frames = []
                self.send(message)
        self._send_frames(frames)

    def _send_frames(self, frames: list[bytes]) -> None:
        if frames:
            data = b"".join(frames)
            self._queue.append((data, "", len(data)))
            self._note_waiting(len(data))

    def close(self) -> None:
        self._client.give_up("the cell closed the connection")

    def behind(self) -> bool:
        return super().behind() or bool(self._unconfirmed or self._arrived)

    async def give_back(self) -> None:
        """Lets the server deliver again, at once, what was received and not acknowledged."""
        for address in self._unhandled:
            await self._client.publish(address, NAK)
        self._unhandled.clear()
        await self._client.answered(self._config.answer_timeout_s)

    async def finish(self) -> None:
        """Takes no more messages, and returns when everything was sent, and what needs a
        confirmation has it. ConnectionError: the connection is lost meanwhile."""
        self._finishing = True
        try:
            if self._pull_subscription is not None:
                await self._client.leave(self._pull_subscription, self._config.answer_timeout_s)
            while self._pending or self._unconfirmed or self._arrived:
                self._progress.clear()
                await self._progress.wait()
            await self.give_back()
        except NatsError as problem:
            raise ConnectionError(str(problem) or type(problem).__name__) from None

    # ── operation ──

    async def open(self) -> None:
        """Opens the session."""
        await self._client.subscribe(f"{self._confirmations}.*", cb=self._confirmed)
        self._pull_subscription = await self._client.subscribe(self._pulls, cb=self._pulled)
        await self.give_back()
        self._connection = self._events.open(self.endpoint, self, PEER)
        if isinstance(self._connection.session, KeepsRecords):
            await self._recall()
        self._note_losses()

    def _note_losses(self) -> None:
        """Says what the server has lost, and lets the session send its state again."""
        losses = self._marks.take()
        for loss in losses:
            log.warning(
                "%s: %s: the server has lost what it had confirmed; the whole state is sent again",
                self.endpoint,
                loss,
            )
        if not losses or self._connection is None:
            return
        if isinstance(self._connection.session, AnnouncesState):
            self._note_arrived(WireMessage(FORGOTTEN, "; ".join(losses).encode()))

    async def _recall(self) -> None:
        """Gives the session its records, at the first connection of the process."""
        try:
            await ensure_kept(self._client, self._config)
            records = [] if self.recalled else await read_kept(self._client, self._config)
        except JetStreamError as problem:
            log.warning(
                "%s: %s; a command that is under way when the cell is killed may be carried out "
                "again at its next start",
                self.endpoint,
                problem,
            )
            return
        for name, data in records:
            self._note_arrived(WireMessage(f"{KEPT}/{name}", data))
        if not self.recalled:
            self._note_arrived(WireMessage(KEPT, b""))
        self.recalled = True

    async def run(self, *, pulls: bool) -> str:
        """Carries messages both ways until the connection is lost; returns the reason."""
        assert self._connection is not None
        work = [self._send(), self._watch(), *([self._pull()] if pulls else [])]
        tasks = [asyncio.create_task(each) for each in work]
        try:
            ends: set[asyncio.Future[Any]] = {*tasks, self._client.lost}
            await asyncio.wait(ends, return_when="FIRST_COMPLETED")
            for task in tasks:
                if task.done() and not task.cancelled() and (problem := task.exception()):
                    if not isinstance(problem, OSError | NatsError):
                        log.error("%s: a bug", self.endpoint, exc_info=problem)
                    self._client.give_up(str(problem) or type(problem).__name__)
        finally:
            await end_tasks(*tasks)
            self._unconfirmed.clear()
            self._queue.clear()
            self._pending = 0
            self._progress.set()
            while self._arrived:
                self._give_arrived()
            self._events.closed(self._connection)
        return self._client.lost.result()

    # ── robot to backend ──

    async def _send(self) -> None:
        while True:
            await self._sendable.wait()
            self._sendable.clear()
            while self._queue:
                size = 0
                while self._queue and size < BATCH:
                    data, reply, one = self._queue.popleft()
                    size += one
                    if isinstance(data, bytes):
                        await self._client.write(data)
                    else:
                        await self._publish(data, reply)
                await self._client.answered(self._config.answer_timeout_s)
                self._pending -= size
                self._drained()

    async def _publish(self, message: WireMessage, reply: str) -> None:
        subject = message.address
        if subject.startswith(KEPT):
            subject = f"{kept_subject(self._config)}.{subject.removeprefix(KEPT + '/')}"
        try:
            if reply:
                headers = {"Nats-Msg-Id": message.reply_to}
                await self._client.publish(subject, message.payload, reply, headers)
            else:
                await self._client.publish(message.address, message.payload)
        except (NatsError, ValueError) as problem:
            reason = str(problem) or type(problem).__name__
            self._say(f"a message to {message.address[:100]!r} cannot be sent: {reason}")
            self._unconfirmed.pop(reply, None)

    async def _confirmed(self, message: Msg) -> None:
        message_id, _ = self._unconfirmed.pop(message.subject, ("", 0.0))
        if not message_id or self._connection is None:
            return
        if (message.headers or {}).get("Status") == NO_RESPONDERS:
            if not self._lacks_stream and not self._problems:
                self._say("JetStream does not store a message: no stream has its subject")
            self._lacks_stream = True
            self._drained()
        elif problem := _refusal(message):
            self._say(f"JetStream does not store a message: {problem}")
            self._drained()
        else:
            self._mark(message)
            self._said = ""
            self._stored_at = asyncio.get_running_loop().time()
            self._note_arrived(WireMessage(CONFIRMED, b"", message_id))

    def _mark(self, message: Msg) -> None:
        """Remembers how far the stream has come."""
        stored = msgspec.json.decode(message.data, type=PubAck)
        if not stored.duplicate:
            self._marks.confirmed(stored.stream, stored.seq)

    async def damage(self, fault: str) -> None:
        """Lets the stream of what robots say vanish, or messages in it."""
        stream, within = self._config.stream_in, self._config.answer_timeout_s
        with contextlib.suppress(JetStreamError):
            if fault == "stream_lost":
                await ask(self._client, f"STREAM.DELETE.{stream}", {}, within)
            elif fault == "stream_purged":
                await ask(self._client, f"STREAM.PURGE.{stream}", {}, within)
            else:
                found = await ask(self._client, f"STREAM.INFO.{stream}", {}, within)
                middle = (found.state.first_seq + found.state.last_seq) // 2
                wanted = {"seq": max(middle, 1), "no_erase": True}
                await ask(self._client, f"STREAM.MSG.DELETE.{stream}", wanted, within)

    async def _watch(self) -> None:
        """Notices a server that does not answer, streams that are gone, and confirmations that do
        not come."""
        loop = asyncio.get_running_loop()
        pinged = looked = loop.time()
        while True:
            await asyncio.sleep(
                min(self._config.ping_interval_s, self._config.answer_timeout_s) / 4
            )
            if self._lacks_stream or loop.time() - looked >= self._config.ping_interval_s:
                await self._ensure_streams()
                looked = loop.time()
            await self._drop_late(loop.time())
            if loop.time() - pinged >= self._config.ping_interval_s:
                await self._client.answered(self._config.answer_timeout_s)
                pinged = loop.time()

    async def _ensure_streams(self) -> None:
        """Makes a stream again that was deleted; says what a changed one lacks."""
        assert self._connection is not None
        try:
            problems = await ensure_streams(self._client, self._config, self._marks)
            if isinstance(self._connection.session, KeepsRecords):
                await ensure_kept(self._client, self._config)
        except JetStreamError as problem:
            self._say(str(problem))
            return
        self._lacks_stream = False
        self._note_losses()
        if problems and problems != self._problems:
            log.warning("%s: %s", self.endpoint, "; ".join(problems))
        self._problems = problems

    async def _drop_late(self, now: float) -> None:
        """Forgets confirmations that did not come in time."""
        late = {key: until for key, (_, until) in self._unconfirmed.items() if until < now}
        for key in late:
            del self._unconfirmed[key]
        if not late:
            return
        self._drained()
        if self._stored_at > min(late.values()) - self._config.answer_timeout_s:
            self._say("some messages were not confirmed by JetStream in time")
        elif await self._is_storing():
            self._say("JetStream confirms messages late: it has more to store than it can")
        elif self._config.servers:
            self._say("JetStream stores nothing: its disk may be full")
        else:
            self.stores_nothing = True
            self._client.give_up("it stores nothing: its disk may be full")

    async def _is_storing(self) -> bool:
        """Whether the stream of what robots say grows, although nothing is confirmed in time."""
        lasts, within = [], self._config.answer_timeout_s
        try:
            for _ in range(2):
                subject = f"STREAM.INFO.{self._config.stream_in}"
                lasts.append((await ask(self._client, subject, {}, within)).state.last_seq)
                await asyncio.sleep(GROWTH_SECONDS)
        except JetStreamError:
            return False
        return lasts[1] > lasts[0]

    def _drained(self) -> None:
        self._progress.set()
        if self._connection is not None:
            self._events.drained(self._connection)

    # ── to the session ──

    def _note_arrived(self, message: WireMessage) -> None:
        if not self._arrived:
            asyncio.get_running_loop().call_soon(self._give_arrived)
        self._arrived.append(message)

    def _give_arrived(self) -> None:
        """Gives the session what has arrived since the last turn, at most `AT_ONCE` messages."""
        if not self._arrived or self._connection is None:
            return
        count = min(len(self._arrived), AT_ONCE)
        messages = [self._arrived.popleft() for _ in range(count)]
        if self._arrived:
            asyncio.get_running_loop().call_soon(self._give_arrived)
        self._progress.set()
        self._events.receive_many(self._connection, messages)
        self._asked -= sum(not message.address.startswith(OWN) for message in messages)
        if self._asked <= 0:
            self._pull_ended.set()

    # ── backend to robot ──

    async def _pull(self) -> None:
        """Asks for as many messages as the session accepts, one request at a time."""
        subject = f"{API}.CONSUMER.MSG.NEXT.{self._config.stream_out}.{self._config.durable}"
        size = max(LARGEST_PULL, 2 * self._client.max_payload)
        while True:
            await self._readable.wait()
            assert self._connection is not None
            batch = min(PULL, self._connection.session.credit())
            if batch <= 0:
                await asyncio.sleep(CREDIT_SECONDS)
                continue
            request = {
                "batch": batch,
                "max_bytes": size,
                "expires": round(PULL_SECONDS * NS_PER_SECOND),
                "idle_heartbeat": round(PULL_HEARTBEAT_SECONDS * NS_PER_SECOND),
            }
            self._asked = batch
            self._pull_refused = False
            self._pull_ended.clear()
            await self._client.publish(subject, msgspec.json.encode(request), self._pulls)
            await self._end_of_pull()
            if self._pull_refused:
                if await is_gone(self._client, self._config):
                    self._client.give_up(f"the consumer {self._config.durable} is gone")
                await asyncio.sleep(NO_LEADER_SECONDS)

    async def _end_of_pull(self) -> None:
        """Returns when the server has ended the request, or has lost it."""
        ended = asyncio.ensure_future(self._pull_ended.wait())
        try:
            self._pull_mentioned = True
            while self._pull_mentioned:
                self._pull_mentioned = False
                if await is_done({ended}, PULL_SILENCE_SECONDS):
                    return
        finally:
            ended.cancel()

    async def _pulled(self, message: Msg) -> None:
        self._pull_mentioned = True
        if message.subject == self._pulls:
            self._pull_status(message.headers or {})
            return
        self._unhandled[message.reply] = None
        while len(self._unhandled) > MOST_UNHANDLED:
            del self._unhandled[next(iter(self._unhandled))]
        if self._connection is None or self._finishing:
            return
        self._note_arrived(WireMessage(message.subject, message.data, message.reply))

    def _pull_status(self, headers: dict[str, str]) -> None:
        status, reason = headers.get("Status", ""), headers.get("Description", "")
        if any(text in reason.lower() for text in CONSUMER_GONE):
            self._client.give_up(f"the consumer {self._config.durable} is gone")
        elif status in ENDS_OF_PULL:
            self._pull_refused = status == NO_RESPONDERS
            self._pull_ended.set()

    # ── log ──

    def _say(self, text: str) -> None:
        """Logs a problem once, not for every message."""
        if text != self._said:
            log.warning("%s: %s", self.endpoint, text)
            self._said = text


def _refusal(message: Msg) -> str:
    """Why JetStream has not stored a message; empty if it has."""
    try:
        answer = msgspec.json.decode(message.data, type=PubAck)
    except UNREADABLE:
        return "its answer cannot be read"
    if answer.error is not None:
        return str(answer.error.get("description", answer.error))
    return "" if answer.stream else "its answer names no stream"
