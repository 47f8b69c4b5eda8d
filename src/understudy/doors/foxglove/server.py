"""Foxglove's websocket protocol, as `foxglove.sdk.v1` and `foxglove.websocket.v1`, which are one.

    server → client                                    client → server
    serverInfo, advertise, advertiseServices           subscribe, unsubscribe
    binary 1: subscription, time, message              binary 2: service call
    binary 2: time                                     getParameters, setParameters
    binary 3: answer of a service; serviceCallFailure  subscribeParameterUpdates, unsubscribe…
    parameterValues, status

The channels are those of a log; all times are simulated ones. A client that does not keep up gets
the newest pictures and scenes, a few of the last states, and the last thousand events.

The services are the commands and queries of the cell. A request is a JSON object with the
parameters of its command; with `secret`, the secret of the run, a client may command REAL robots.
An answer that is no object has the key `result`.
"""

import asyncio
import secrets
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from understudy import __version__
from understudy.app.live import Live
from understudy.doors.channels import CellChannels, Channel, Message, channels_of
from understudy.doors.websocket import Client, Feed, address_of, object_of, served
from understudy.errors import Refused

PORT = 8765
SUBPROTOCOLS = ("foxglove.sdk.v1", "foxglove.websocket.v1")
"""Clients of the SDK offer the first, older ones the second; a server of the SDK refuses these."""
CAPABILITIES = ("time", "services", "parameters", "parametersSubscribe")
TICK_SECONDS = 0.05
MESSAGE, TIME, SERVICE_RESPONSE = 1, 2, 3
SERVICE_REQUEST = 2
WARNING, ERROR = 1, 2
EVENTS_KEPT, STATES_KEPT = 1000, 20
"""Messages of a channel that wait for a client."""
SLOW = ("foxglove.CompressedImage", "foxglove.SceneUpdate")
"""Large messages, of which a client gets the newest one; they are written in a thread."""
MOST_CALLS = 32
"""Calls of a client that wait for their answers."""
LARGEST_ID = 2**32 - 1
RATE = "rate"
ANSWER = {"type": "object", "properties": {}}
VIEWABLE = ("boolean", "string", "number", "integer")
"""Types that viewers know beside objects and arrays."""


@asynccontextmanager
async def open_door(live: Live, value: str) -> AsyncIterator[dict[str, str]]:
    """Serves Foxglove and other clients of its protocol while the cell runs."""
    door = FoxgloveDoor(live)
    place = address_of(live, "foxglove", value, PORT)
    serving = served(
        live,
        "foxglove",
        place,
        door.session,
        text=False,
        subprotocols=SUBPROTOCOLS,
        token_in_messages=False,
    )
    try:
        async with serving as address:
            yield {"foxglove": address}
    finally:
        door.close()


# ── what clients send ───────────────────────────────────────────────────────────────────────────


class Subscription(Struct, frozen=True, rename="camel"):
    id: int
    channel_id: int


class Subscribe(Struct, frozen=True):
    subscriptions: list[Subscription]


class Unsubscribe(Struct, frozen=True, rename="camel"):
    subscription_ids: list[int]


class Parameter(Struct, frozen=True):
    name: str
    value: Any = None


class GetParameters(Struct, frozen=True, rename="camel"):
    parameter_names: list[str] = []
    id: str | None = None


class SetParameters(Struct, frozen=True):
    parameters: list[Parameter]
    id: str | None = None


class Names(Struct, frozen=True, rename="camel"):
    parameter_names: list[str] = []


# ── the door ────────────────────────────────────────────────────────────────────────────────────


class FoxgloveDoor:
    """What all clients share: numbers of channels, services, and one listener to the cell."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.channels: CellChannels = channels_of(live)
        self.services = {
            number: Service(each.name, viewable(msgspec.json.schema(each.parameters)))
            for number, each in enumerate(live.commands, start=1)
        }
        self.numbers: dict[Channel, int] = {}
        self.sessions: list[FoxgloveSession] = []
        self._feed = Feed(self.channels, self._heard, self._tick, TICK_SECONDS)
        self._id = secrets.token_hex(8)

    def session(self, client: Client) -> "FoxgloveSession":
        session = FoxgloveSession(self, client)
        self._number_channels()
        session.greet(self._info(), list(self.numbers.items()))
        self.sessions.append(session)
        self._feed.want(messages=True, ticks=True)
        return session

    def remove(self, session: "FoxgloveSession") -> None:
        self.sessions.remove(session)
        if not self.sessions:
            self._feed.want(messages=False, ticks=False)

    def close(self) -> None:
        for session in list(self.sessions):
            session.closed()

    def rate(self) -> dict[str, Any]:
        """The parameter `rate`."""
        rate = self.live.rate
        return {"name": RATE, "value": rate} | (
            {} if isinstance(rate, str) else {"value": float(rate), "type": "float64"}
        )

    def _info(self) -> dict[str, Any]:
        config = self.live.config
        seed = str(config.head.seed)
        return {
            "op": "serverInfo",
            "name": f"understudy {__version__}: {config.name}",
            "capabilities": CAPABILITIES,
            "supportedEncodings": ["json"],
            "metadata": {"cell": config.name, "seed": seed, "digest": config.digest},
            "sessionId": self._id,
        }

    def _number_channels(self) -> None:
        """Numbers of new channels; those for our own pages have none."""
        new = [
            each
            for each in self.channels.channels.values()
            if not each.native and each not in self.numbers
        ]
        for channel in new:
            self.numbers[channel] = len(self.numbers) + 1
        if new:
            for session in self.sessions:
                session.advertise([(each, self.numbers[each]) for each in new])

    def _heard(self, message: Message) -> None:
        if message.channel not in self.numbers:
            self._number_channels()
        if number := self.numbers.get(message.channel):
            for session in self.sessions:
                session.publish(number, message)

    def _tick(self) -> None:
        now, rate = self.live.operator.pump.now(), self.rate()
        for session in self.sessions:
            session.tick(now, rate)


class FoxgloveSession:
    """The operations of one client."""

    def __init__(self, door: FoxgloveDoor, client: Client) -> None:
        self._door = door
        self._client = client
        self._subscriptions: dict[int, int] = {}
        """Number of a channel → that of its subscription."""
        self._wants_rate = False
        self._sent_rate: Any = None
        self._time = -1
        self._dropped = 0
        self._calls: set[asyncio.Task[None]] = set()
        self._operations: dict[str, tuple[type[Struct], Callable[[Any], Any]]] = {
            "subscribe": (Subscribe, self._subscribe),
            "unsubscribe": (Unsubscribe, self._unsubscribe),
            "getParameters": (GetParameters, self._get_parameters),
            "setParameters": (SetParameters, self._set_parameters),
            "subscribeParameterUpdates": (Names, self._follow_parameters),
            "unsubscribeParameterUpdates": (Names, self._leave_parameters),
        }

    def greet(self, info: Any, channels: list[tuple[Channel, int]]) -> None:
        self._send(info)
        self.advertise(channels)
        services = [each.advertised(number) for number, each in self._door.services.items()]
        self._send({"op": "advertiseServices", "services": services})

    def advertise(self, channels: list[tuple[Channel, int]]) -> None:
        rows = [
            {
                "id": number,
                "topic": channel.topic,
                "encoding": "json",
                "schemaName": channel.schema_name,
                "schemaEncoding": "jsonschema",
                "schema": channel.schema.decode(),
            }
            for channel, number in channels
        ]
        self._send({"op": "advertise", "channels": rows})

    def closed(self) -> None:
        if self not in self._door.sessions:
            return
        for call in self._calls:
            call.cancel()
        self._door.remove(self)

    async def receive(self, data: str | bytes) -> None:
        if isinstance(data, bytes):
            return self._receive_binary(data)
        given = object_of(data, '{"op": "subscribe", …}')
        if isinstance(given, Refused):
            return self._status(given.reason)
        name = given.get("op")
        found = self._operations.get(name) if isinstance(name, str) else None
        if found is None:
            names = ", ".join(self._operations)
            return self._status(f"op {str(name)[:100]!r} is not possible here; there are: {names}")
        kind, run = found
        try:
            operation = msgspec.convert(given, kind)
        except msgspec.ValidationError as problem:
            return self._status(f"{name}: {str(problem)[:200]}")
        if (awaitable := run(operation)) is not None:
            await awaitable
        return None

    def _send(self, answer: Any) -> None:
        self._client.reply(msgspec.json.encode(answer).decode())

    def _status(self, words: str, level: int = ERROR) -> None:
        """Tells the client why an operation was refused."""
        self._send({"op": "status", "level": level, "message": words})

    # ── channels ──

    def _subscribe(self, given: Subscribe) -> None:
        channels = {number: channel for channel, number in self._door.numbers.items()}
        for each in given.subscriptions:
            number, channel = each.channel_id, channels.get(each.channel_id)
            if channel is None:
                self._status(f"no channel {number}; those that were advertised can be subscribed")
            elif not 0 <= each.id <= LARGEST_ID:
                self._status(f"subscription {each.id}; allowed: 0 … {LARGEST_ID}")
            elif each.id in self._subscriptions.values():
                self._status(f"subscription {each.id} exists already; unsubscribe it first")
            elif number in self._subscriptions:
                self._status(f"{channel.topic} is subscribed already", WARNING)
            else:
                self._subscriptions[number] = each.id
                if latest := self._door.channels.latest.get(channel.topic):
                    self.publish(number, latest)

    def _unsubscribe(self, given: Unsubscribe) -> None:
        for wanted in given.subscription_ids:
            number = next((n for n, each in self._subscriptions.items() if each == wanted), None)
            if number is None:
                self._status(f"no subscription {wanted}", WARNING)
            else:
                del self._subscriptions[number]
                self._client.forget(str(number))

    def publish(self, number: int, message: Message) -> None:
        """Offers a message to the client, if it has subscribed its channel."""
        subscription = self._subscriptions.get(number)
        if subscription is None:
            return
        head = struct.pack("<BIQ", MESSAGE, subscription, message.at)
        make: Any = lambda: head + message.json()  # noqa: E731
        kept = STATES_KEPT if message.channel.is_state else EVENTS_KEPT
        if message.channel.schema_name in SLOW:
            quick, kept = make, 1
            make = lambda: asyncio.get_running_loop().run_in_executor(None, quick)  # noqa: E731
        self._client.offer(str(number), make, kept)

    def tick(self, now: int, rate: dict[str, Any]) -> None:
        """Tells the time, a new rate, and that messages were dropped."""
        if now != self._time:
            self._time = now
            frame = struct.pack("<BQ", TIME, now)
            self._client.replace("time", lambda: frame)
        if self._wants_rate and rate != self._sent_rate:
            self._sent_rate = rate
            self._send_rate(None)
        if self._client.dropped != self._dropped:
            self._dropped = self._client.dropped
            words = f"{self._dropped} messages were dropped: this client reads too slowly"
            status = {"op": "status", "level": WARNING, "message": words, "id": "dropped"}
            text = msgspec.json.encode(status).decode()
            self._client.replace("dropped", lambda: text)

    # ── parameters ──

    def _send_rate(self, number: str | None, *, shown: bool = True) -> None:
        values = [self._door.rate()] if shown else []
        answer = {"op": "parameterValues", "parameters": values}
        self._send(answer | ({} if number is None else {"id": number}))

    def _is_rate(self, name: str) -> bool:
        if name != RATE:
            self._status(f"no parameter {name[:100]!r}; there is: {RATE}")
        return name == RATE

    def _get_parameters(self, given: GetParameters) -> None:
        found = [self._is_rate(name) for name in given.parameter_names[:MOST_CALLS]]
        self._send_rate(given.id, shown=not found or any(found))

    async def _set_parameters(self, given: SetParameters) -> None:
        for each in given.parameters[:MOST_CALLS]:
            if self._is_rate(each.name):
                answer = await self._client.call("rate", {"rate": each.value})
                if isinstance(answer, Refused):
                    self._status(answer.reason)
        if given.id is not None:
            self._send_rate(given.id)

    def _follow_parameters(self, given: Names) -> None:
        found = [self._is_rate(name) for name in given.parameter_names[:MOST_CALLS]]
        if not found or any(found):
            self._wants_rate = True

    def _leave_parameters(self, given: Names) -> None:
        if not given.parameter_names or RATE in given.parameter_names:
            self._wants_rate, self._sent_rate = False, None

    # ── services ──

    def _receive_binary(self, data: bytes) -> None:
        if len(data) < 13 or data[0] != SERVICE_REQUEST:
            words = f"{len(data)} bytes that begin with {data[:1].hex() or 'nothing'}"
            return self._status(f"{words}; the only binary message is a service call: 02 …")
        service, call, length = struct.unpack_from("<III", data, 1)
        encoding, payload = data[13 : 13 + length], data[13 + length :]
        if len(encoding) < length:
            return self._status(f"a service call with an encoding of {length} bytes is too short")

        def fail(words: str) -> None:
            head = {"op": "serviceCallFailure", "serviceId": service, "callId": call}
            self._send({**head, "message": words})

        found = self._door.services.get(service)
        if found is None:
            return fail(f"no service {service}; those that were advertised can be called")
        if encoding != b"json":
            return fail(f"encoding {encoding[:40].decode('ascii', 'replace')!r}; allowed: 'json'")
        if len(self._calls) >= MOST_CALLS:
            return fail(f"{MOST_CALLS} calls wait for their answers: try again later")
        head = struct.pack("<BIII", SERVICE_RESPONSE, service, call, length) + encoding

        async def run() -> None:
            answer = await found.call(self._client, payload)
            if isinstance(answer, Refused):
                fail(answer.reason)
            else:
                self._client.reply(head + answer)

        task = asyncio.ensure_future(run())
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return None


# ── services ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Service:
    name: str
    request: Mapping[str, Any]

    def advertised(self, number: int) -> dict[str, Any]:
        return {
            "id": number,
            "name": f"/{self.name}",
            "type": f"understudy.{self.name}",
            "request": _described(f"understudy.{self.name}.request", self.request),
            "response": _described(f"understudy.{self.name}.response", ANSWER),
        }

    async def call(self, client: Client, payload: bytes) -> bytes | Refused:
        """The answer to a request, as JSON."""
        given = object_of(payload or b"{}", "{}, with the parameters of the command")
        if isinstance(given, Refused):
            return given
        if refused := client.admission.check(given.pop("secret", None)):
            return refused
        answer = await client.call(self.name, given)
        if isinstance(answer, Refused):
            return answer
        written = msgspec.json.encode(answer)
        return written if written.startswith(b"{") else b'{"result":%s}' % written


def _described(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "encoding": "json",
        "schemaName": name,
        "schemaEncoding": "jsonschema",
        "schema": msgspec.json.encode(schema).decode(),
    }


def viewable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema as viewers read it: without references, and without what has several types."""
    found = _viewable(schema, schema.get("$defs", {}))
    return ANSWER if found is None else found


def _viewable(schema: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any] | None:
    """None: viewers know no such type."""
    if reference := schema.get("$ref"):
        return _viewable(named[reference.rpartition("/")[2]], named)
    shown = {key: schema[key] for key in ("title", "description", "default") if key in schema}
    kind = schema.get("type")
    if kind == "object":
        inner = {
            name: _viewable(each, named) for name, each in schema.get("properties", {}).items()
        }
        known = {name: each for name, each in inner.items() if each is not None}
        return {**shown, "type": "object", "properties": known}
    if kind == "array":
        items = _viewable(schema.get("items") or {}, named)
        return None if items is None else {**shown, "type": "array", "items": items}
    return {**shown, "type": kind} if kind in VIEWABLE else None
