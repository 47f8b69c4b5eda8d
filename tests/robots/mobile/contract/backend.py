"""A backend of mobile robots, written from the contract with nats-py alone: no code of the project.

It keeps every message of the stream ROBOT_IN from the first on, and waits with deadlines.
"""

import asyncio
import json
import threading
import time
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

PATIENCE = 90.0
ENDS = ("REJECTED", "DONE", "FAILED", "CANCELED")
Result = TypeVar("Result")
Payload = dict[str, Any]


class Got(NamedTuple):
    """A message of a robot as it is in the stream."""

    robot: str
    kind: str
    envelope: Payload
    headers: dict[str, str]

    @property
    def payload(self) -> Payload:
        found: Payload = self.envelope["payload"]
        return found


def anything(payload: Payload) -> bool:
    return True


class Backend:
    """One connection; messages come in a thread of their own."""

    def __init__(self, address: str) -> None:
        self.messages: list[Got] = []
        self.routes: Callable[[str, Payload], Payload | None] | None = None
        """Answers a route.request of a robot; None: nothing is answered."""
        self._address = address
        self._news = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._client: Client
        self.streams: JetStreamContext

    def __enter__(self) -> "Backend":
        self._thread.start()
        self.call(self._connect())
        return self

    def __exit__(self, *exception: object) -> None:
        self.call(self._client.close())
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join(PATIENCE)
        self._loop.close()

    def call(self, action: Coroutine[Any, Any, Result]) -> Result:
        limited = asyncio.wait_for(action, PATIENCE)
        return asyncio.run_coroutine_threadsafe(limited, self._loop).result(2 * PATIENCE)

    async def _connect(self) -> None:
        self._client = await nats.connect(
            self._address, max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=_ignore
        )
        self.streams = self._client.jetstream()
        while True:
            try:
                await self.streams.subscribe(
                    "robot.>", stream="ROBOT_IN", ordered_consumer=True, cb=self._received
                )
            except NotFoundError:
                await asyncio.sleep(0.05)
            else:
                return

    def _end(self) -> None:
        """Ends the tasks of nats-py, too."""
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_soon(self._loop.stop)

    async def _received(self, message: Msg) -> None:
        _, robot, kind = message.subject.split(".", 2)
        got = Got(robot, kind, json.loads(message.data), dict(message.headers or {}))
        with self._news:
            self.messages.append(got)
            self._news.notify_all()
        if kind == "route.request" and self.routes is not None:
            answer = self.routes(robot, got.payload)
            if answer is not None:
                await self._publish(robot, "route.response", self._envelope(robot, answer))

    # ── to robots ──

    def _envelope(self, robot: str, payload: Payload, **changes: Any) -> Payload:
        name = str(uuid.uuid4())
        whole = {
            "payloadVersion": 1,
            "messageId": name,
            "robotId": robot,
            "robotCode": "",
            "ts": "2026-01-01T00:00:00.000Z",
            "correlationId": f"cause of {name}",
            "payload": payload,
        }
        return whole | changes

    async def _publish(self, robot: str, kind: str, envelope: Payload) -> None:
        headers = {"Nats-Msg-Id": envelope["messageId"]}
        data = json.dumps(envelope).encode()
        await self.streams.publish(f"robot.{robot}.{kind}", data, headers=headers)

    def send(self, robot: str, kind: str, payload: Payload, **changes: Any) -> str:
        """Sends a message and returns its correlation id."""
        envelope = self._envelope(robot, payload, **changes)
        self.call(self._publish(robot, kind, envelope))
        return str(envelope["correlationId"])

    def send_raw(self, robot: str, kind: str, data: bytes) -> None:
        """Bytes without a header, so that the server takes no message for a repeated one."""
        self.call(self.streams.publish(f"robot.{robot}.{kind}", data))

    def command(self, robot: str, command_type: str, **parameters: Any) -> str:
        asked = {"commandType": command_type, "parameters": parameters, "requestedBy": "a test"}
        return self.send(robot, "command.request", asked)

    # ── from robots ──

    def mark(self) -> int:
        """A place in the messages, for `after`."""
        return len(self.messages)

    def wait(
        self,
        robot: str,
        kind: str,
        fits: Callable[[Payload], bool] = anything,
        *,
        after: int = 0,
        cause: str = "",
    ) -> Got:
        """The first message that fits, now or as soon as it comes."""
        end = time.monotonic() + PATIENCE
        at = after
        with self._news:
            while True:
                while at < len(self.messages):
                    got = self.messages[at]
                    at += 1
                    if (got.robot, got.kind) != (robot, kind):
                        continue
                    if cause in ("", got.envelope.get("correlationId")) and fits(got.payload):
                        return got
                if not self._news.wait(end - time.monotonic()):
                    raise TimeoutError(self._story(robot, kind))

    def _story(self, robot: str, kind: str) -> str:
        told = [got for got in self.messages if got.robot == robot]
        calm = [got for got in told if got.kind not in ("heartbeat", "telemetry", "traffic.state")]
        lines = [f"{got.kind} {json.dumps(got.payload)[:300]}" for got in calm[-12:]]
        return f"no such {kind} of {robot}; its last messages:\n" + "\n".join(lines)

    def event(self, robot: str, type_: str, *, after: int = 0) -> Payload:
        return self.wait(robot, "events", lambda p: p["type"] == type_, after=after).payload

    def ended(self, robot: str, cause: str) -> list[tuple[str, str | None]]:
        """All acks of a command when it has ended: status and reason."""
        self.wait(robot, "command.ack", lambda p: p["status"] in ENDS, cause=cause)
        return self.acks(robot, cause)

    def acks(self, robot: str, cause: str) -> list[tuple[str, str | None]]:
        return [
            (got.payload["status"], got.payload.get("reason"))
            for got in self.of(robot, "command.ack")
            if got.envelope.get("correlationId") == cause
        ]

    def of(self, robot: str, kind: str) -> list[Got]:
        return [got for got in list(self.messages) if (got.robot, got.kind) == (robot, kind)]

    def state(self, robot: str, fits: Callable[[Payload], bool] = anything) -> Payload:
        """The next state that fits, from now on."""
        return self.wait(robot, "state", fits, after=self.mark()).payload

    def unacknowledged(self) -> int:
        """Messages for robots that were delivered or wait, and are not acknowledged yet."""
        found = self.call(self.streams.consumers_info("ROBOT_OUT"))
        return sum((each.num_ack_pending or 0) + (each.num_pending or 0) for each in found)


async def _ignore(_: Exception) -> None:
    """The server may go away; nats-py connects again."""
