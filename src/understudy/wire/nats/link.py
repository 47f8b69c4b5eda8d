"""The session behind the server: what it sends, what is confirmed, what it receives."""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from understudy.errors import UNREADABLE
from understudy.ports import CONFIRMED, WireMessage
from understudy.units import NS_PER_SECOND
from understudy.wire.broker_queue import BrokerQueue
from understudy.wire.connection import Connection
from understudy.wire.interface import PeerEvents
from understudy.wire.nats.client import NatsClient, is_done
from understudy.wire.nats.config import Config
from understudy.wire.nats.streams import API, is_gone
from understudy.wire.task_shutdown import end_tasks

log = logging.getLogger(__name__)

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
CREDIT_SECONDS = 0.02
"""Time after which a session that had no credit is asked again."""
AT_ONCE = 256
"""Received messages that the session gets in one turn of the event loop."""
MOST_UNCONFIRMED = MOST_UNHANDLED = 10_000
NO_RESPONDERS = "503"
ENDS_OF_PULL = {"404", "408", "409", NO_RESPONDERS}
CONSUMER_GONE = ("consumer deleted", "consumer is push based")
NAK = b"-NAK"
PEER = "nats"


class PubAck(Struct):
    """JetStream's answer to a message that it stores."""

    error: dict[str, object] | None = None
    stream: str = ""


class NatsLink(BrokerQueue):
    """`Sink` of the one session behind the server."""

    def __init__(
        self,
        endpoint: str,
        client: NatsClient,
        config: Config,
        events: PeerEvents,
        unhandled: dict[str, None],
    ) -> None:
        """``unhandled``: addresses of acknowledgements that were not sent yet; those of the last
        connection are given back to the server."""
        super().__init__(OVERHEAD)
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
        try:
            if reply:
                headers = {"Nats-Msg-Id": message.reply_to}
                await self._client.publish(message.address, message.payload, reply, headers)
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
        if problem := _refusal(message):
            self._say(f"JetStream does not store a message: {problem}")
            self._drained()
        else:
            self._said = ""
            self._note_arrived(WireMessage(CONFIRMED, b"", message_id))

    async def _watch(self) -> None:
        """Notices a server that does not answer, and confirmations that do not come."""
        loop = asyncio.get_running_loop()
        pinged = loop.time()
        while True:
            await asyncio.sleep(
                min(self._config.ping_interval_s, self._config.answer_timeout_s) / 4
            )
            late = [key for key, (_, until) in self._unconfirmed.items() if until < loop.time()]
            for key in late:
                del self._unconfirmed[key]
            if late:
                self._say(f"{len(late)} messages were not confirmed by JetStream in time")
                self._drained()
            if loop.time() - pinged >= self._config.ping_interval_s:
                await self._client.answered(self._config.answer_timeout_s)
                pinged = loop.time()

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
        self._asked -= sum(message.address != CONFIRMED for message in messages)
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
                "batch": batch, "max_bytes": size, "expires": round(PULL_SECONDS * NS_PER_SECOND),
                "idle_heartbeat": round(PULL_HEARTBEAT_SECONDS * NS_PER_SECOND),
            }  # fmt: skip
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
    if (message.headers or {}).get("Status") == NO_RESPONDERS:
        return "no stream has its subject"
    try:
        answer = msgspec.json.decode(message.data, type=PubAck)
    except UNREADABLE:
        return "its answer cannot be read"
    if answer.error is not None:
        return str(answer.error.get("description", answer.error))
    return "" if answer.stream else "its answer names no stream"
