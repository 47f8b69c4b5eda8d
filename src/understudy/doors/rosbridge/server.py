"""rosbridge v2 on a websocket: each text frame is an operation, a JSON object with the key `op`.

    advertise, unadvertise, publish      /cmd_vel, /emergency_stop of the cell; no other topics
    subscribe, unsubscribe               throttle_rate in ms, queue_length
    call_service → service_response
    send_action_goal → action_feedback, action_result;  cancel_action_goal
    auth                                 `mac` (or `secret`): the secret of the run, or the token
    set_level, status                    refusals are a status, with the id of the operation

A client gets of each topic the newest message, or as many as its `queue_length` says.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from understudy.app.live import Live
from understudy.doors import messages as m
from understudy.doors.channels import CellChannels, Message, channels_of
from understudy.doors.rosbridge.actions import (
    ABORTED,
    CANCELED,
    Goal,
    GoalError,
    Outcome,
)
from understudy.doors.rosbridge.orders import Driving, Orders, orders_of
from understudy.doors.rosbridge.topics import Published, Topics, topics_of
from understudy.doors.rosbridge.types import (
    ACTIONS,
    MESSAGES,
    SERVICES,
    in_ros_2,
    is_ros_1,
    plain,
    stamp,
    typedefs,
)
from understudy.doors.websocket import Client, Feed, address_of, object_of, served
from understudy.errors import Refused

PORT = 9090
CLOCK_SECONDS = 0.05
MOST_TOPICS = 1000
LONGEST_QUEUE = 1000
MOST_GOALS = 100
LEVELS = ("none", "error", "warning", "info")


@asynccontextmanager
async def open_door(live: Live, value: str) -> AsyncIterator[dict[str, str]]:
    """Serves ROS tools while the cell runs."""
    door = RosDoor(live)
    place = address_of(live, "rosbridge", value, PORT)
    try:
        async with served(live, "rosbridge", place, door.session) as address:
            yield {"rosbridge": address}
    finally:
        door.close()


@dataclass
class Subscription:
    """`throttle`: seconds between two messages; `longest`: how many may wait."""

    ros_1: bool
    throttle: float
    longest: int
    ids: set[str] = field(default_factory=set)
    next_at: float = 0.0
    key: Any = None
    late: asyncio.TimerHandle | None = None


class RosDoor:
    """What all clients share: topics, orders, and one listener to the channels of the cell."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.channels: CellChannels = channels_of(live)
        self.topics: Topics = topics_of(live, self.channels)
        self.orders: Orders = orders_of(live)
        self.api = RosApi(self.topics, self.orders)
        self.sessions: list[RosSession] = []
        self._feed = Feed(self.channels, self._heard, self._tick, CLOCK_SECONDS)

    def session(self, client: Client) -> "RosSession":
        session = RosSession(self, client)
        self.sessions.append(session)
        return session

    def subscribed(self, session: "RosSession", topic: str) -> None:
        """Sends a new subscriber the states that are known, and sees that the cell is read."""
        if self._feed.listening:
            for message in list(self.channels.latest.values()):
                for each in self.topics.of_message(message, (topic,)):
                    session.publish(each)
        self.update_feed()

    def update_feed(self) -> None:
        """Reads the cell and its clock only while a client has subscribed a topic that needs it."""
        heard = {topic for session in self.sessions for topic in session.subscriptions}
        self._feed.want(messages=bool(heard), ticks="/clock" in heard)

    def close(self) -> None:
        for session in list(self.sessions):
            session.closed()

    def _heard(self, message: Message) -> None:
        heard = {topic for session in self.sessions for topic in session.subscriptions}
        for each in self.topics.of_message(message, heard):
            for session in self.sessions:
                session.publish(each)

    def _tick(self) -> None:
        message = self.topics.clock()
        for session in self.sessions:
            session.publish(message)


class RosSession:
    """The operations of one client."""

    def __init__(self, door: RosDoor, client: Client) -> None:
        self.subscriptions: dict[str, Subscription] = {}
        self._door = door
        self._client = client
        self._level = LEVELS.index("error")
        self._driving = Driving(client, door.orders.goals, lambda words: self.status(words))
        self._goals: dict[str, Goal] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._operations: dict[str, Callable[[dict[str, Any]], Coroutine[Any, Any, None]]] = {
            "advertise": self._advertise,
            "unadvertise": self._nothing,
            "publish": self._publish,
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "call_service": self._call_service,
            "send_action_goal": self._send_goal,
            "cancel_action_goal": self._cancel_goal,
            "auth": self._nothing,
            "set_level": self._set_level,
        }

    async def receive(self, data: str | bytes) -> None:
        given = object_of(data, '{"op": "call_service", …}')
        if isinstance(given, Refused):
            return self.status(given.reason)
        operation = given.get("op")
        secret = given.get("mac", given.get("secret")) if operation == "auth" else None
        if refused := self._client.admission.check(secret):
            words = f'{{"op": "auth", "mac": "…"}} comes first; {refused.reason}'
            return await self._client.close(words)
        run = self._operations.get(operation) if isinstance(operation, str) else None
        if run is None:
            names = ", ".join(self._operations)
            return self.status(f"unknown op {str(operation)[:100]!r}; there are: {names}", given)
        return await run(given)

    def closed(self) -> None:
        if self not in self._door.sessions:
            return
        self._door.sessions.remove(self)
        self._driving.stop()
        for goal in self._goals.values():
            goal.end(ABORTED, "the client has gone")
        for subscription in self.subscriptions.values():
            _cancel(subscription)
        self.subscriptions.clear()
        self._door.update_feed()

    def status(self, words: str, of: dict[str, Any] | None = None, level: str = "error") -> None:
        """Tells the client why an operation was refused."""
        if LEVELS.index(level) <= self._level:
            number = {"id": of["id"]} if of and isinstance(of.get("id"), str | int) else {}
            self._reply({"op": "status", **number, "level": level, "msg": words})

    def _reply(self, answer: dict[str, Any]) -> None:
        self._client.reply(msgspec.json.encode(answer))

    async def _nothing(self, given: dict[str, Any]) -> None:
        """Is allowed, and needs nothing."""

    async def _set_level(self, given: dict[str, Any]) -> None:
        if given.get("level") not in LEVELS:
            return self.status(f"set_level: allowed: {', '.join(LEVELS)}", given)
        self._level = LEVELS.index(given["level"])
        return None

    # ── topics ──

    async def _advertise(self, given: dict[str, Any]) -> None:
        topic, kind = given.get("topic"), given.get("type")
        allowed = self._door.orders.inputs.get(topic) if isinstance(topic, str) else None
        if allowed is None:
            return self._no_input(given)
        if kind is not None and plain(kind) not in allowed:
            return self.status(
                f"{topic} cannot be advertised as {str(kind)[:100]}: it is {' or '.join(allowed)}",
                given,
            )
        return None

    def _no_input(self, given: dict[str, Any]) -> None:
        read = ", ".join(self._door.orders.inputs)
        self.status(
            f"nothing reads {str(given.get('topic'))[:100]!r}; the cell reads: {read}", given
        )

    async def _publish(self, given: dict[str, Any]) -> None:
        topic, message = given.get("topic"), given.get("msg")
        orders = self._door.orders
        if not isinstance(topic, str) or topic not in orders.inputs:
            return self._no_input(given)
        if not isinstance(message, dict):
            return self.status(f"{topic}: msg is a JSON object", given)
        robot = orders.robots.get(topic)
        if topic.endswith("cmd_vel"):
            assert robot is not None
            if robot.name in orders.goals:
                words = f"{robot.name} has a goal of navigate_to_pose; cancel it first"
                return self.status(words, given)
            return await self._driving.drive(robot.name, message)
        if message.get("data") is True:
            answer = await self._client.call(
                "emergency_stop", {} if robot is None else {"robot": robot.name}
            )
            if isinstance(answer, Refused):
                self.status(answer.reason, given)
        return None

    async def _subscribe(self, given: dict[str, Any]) -> None:
        topic, kind = given.get("topic"), given.get("type")
        types = self._door.topics.types
        if not isinstance(topic, str) or topic not in types:
            known = ", ".join(list(types)[:100])
            words = f"nothing publishes {str(topic)[:100]!r}; the cell publishes: {known}"
            return self.status(words, given)
        if kind is not None and plain(kind) != types[topic]:
            return self.status(f"{topic} is {types[topic]}, not {str(kind)[:100]}", given)
        if given.get("compression", "none") != "none":
            words = f"compression {str(given['compression'])[:40]!r}; messages come without"
            self.status(words, given, "warning")
        throttle, longest = given.get("throttle_rate") or 0, given.get("queue_length") or 0
        if not all(isinstance(each, int | float) for each in (throttle, longest)):
            return self.status("throttle_rate and queue_length are numbers", given)
        longest = int(min(max(1, longest), LONGEST_QUEUE))
        found = Subscription(is_ros_1(kind), max(0.0, throttle / 1000.0), longest)
        if before := self.subscriptions.get(topic):
            _cancel(before)
            found.ids = before.ids
        if len(found.ids) >= MOST_TOPICS:
            return self.status(f"at most {MOST_TOPICS} subscriptions of a topic", given)
        found.ids.add(str(given.get("id", "")))
        self.subscriptions[topic] = found
        return self._door.subscribed(self, topic)

    async def _unsubscribe(self, given: dict[str, Any]) -> None:
        topic = given.get("topic")
        found = self.subscriptions.get(topic) if isinstance(topic, str) else None
        if found is None or not isinstance(topic, str):
            return self.status(f"not subscribed: {str(topic)[:100]!r}", given)
        found.ids.discard(str(given.get("id", "")))
        if "id" not in given or not found.ids:
            _cancel(found)
            del self.subscriptions[topic]
            self._client.forget(topic)
            self._door.update_feed()
        return None

    def publish(self, message: Published) -> None:
        """Offers a message to the client, if it wants it now; else the newest one later."""
        found = self.subscriptions.get(message.topic)
        if found is None or (message.key is not None and message.key == found.key):
            return
        loop = asyncio.get_running_loop()
        _cancel(found)
        if found.throttle and (wait := found.next_at - loop.time()) > 0.0:
            found.late = loop.call_later(wait, self.publish, message)
            return
        found.key = message.key
        found.next_at = loop.time() + found.throttle
        ros_1 = found.ros_1
        make: Any = lambda: message.json(ros_1=ros_1)  # noqa: E731
        if message.slow:
            quick = make
            make = lambda: loop.run_in_executor(None, quick)  # noqa: E731
        self._client.offer(message.topic, make, found.longest)

    # ── services ──

    async def _call_service(self, given: dict[str, Any]) -> None:
        name, args = given.get("service"), given.get("args") or {}
        if not isinstance(name, str) or not isinstance(args, dict):
            return self.status("call_service: service is a name, args is a JSON object", given)
        name = name if name.startswith("/") else f"/{name}"
        space, _, own = name.rpartition("/")
        service = self._door.orders.services.get(name)
        answer: Any
        if service is not None:
            answer = await service.call(self._client, args)
        elif space == "/rosapi":
            answer = self._door.api.call(own, args)
        else:
            known = ", ".join(self._door.orders.services)
            answer = Refused(
                f"service {name[:100]!r} does not exist; there are: {known}, /rosapi/…"
            )
        failed = isinstance(answer, Refused)
        self._reply(
            {
                "op": "service_response",
                **({"id": given["id"]} if "id" in given else {}),
                "service": name,
                "values": answer.reason if failed else answer,
                "result": not failed,
            }
        )
        return None

    # ── actions ──

    async def _send_goal(self, given: dict[str, Any]) -> None:
        name, number = given.get("action"), str(given.get("id", ""))
        found = self._door.orders.actions.get(name) if isinstance(name, str) else None
        kind, wanted = given.get("action_type"), given.get("args")
        problem = ""
        if found is None:
            known = ", ".join(self._door.orders.actions) or "none"
            problem = f"action {str(name)[:100]!r} does not exist; there are: {known}"
        elif kind is not None and plain(kind) != found[0]:
            problem = f"{name} is {found[0]}, not {str(kind)[:100]}"
        elif not isinstance(wanted, dict):
            problem = "args: the goal, a JSON object"
        elif number in self._goals:
            problem = f"a goal with the id {number[:100]!r} is under way; give this one another id"
        elif len(self._tasks) >= MOST_GOALS:
            problem = f"{MOST_GOALS} goals of this client are under way; cancel one first"
        if problem or found is None:
            return self._answer(given, ABORTED, problem, taken=False)
        _, action, robot = found
        tell = self._feedback(given) if given.get("feedback") else lambda values: None
        goal = action(self._client, robot, wanted or {}, tell, kind)
        self._goals[number] = goal
        task = asyncio.ensure_future(self._pursue(given, number, goal))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return None

    async def _pursue(self, given: dict[str, Any], number: str, goal: Goal) -> None:
        """Ends the goal that the robot had before, and runs the new one to its end."""
        goals, name = self._door.orders.goals, goal.robot.name
        outcome = Outcome(ABORTED, words="a bug; see the log")
        try:
            while (before := goals.get(name)) is not None:
                before.end(ABORTED, "a new goal has taken its place")
                await before.done.wait()
            goals[name] = goal
            outcome = goal.ending or await goal.run()
        except GoalError as problem:
            outcome = Outcome(ABORTED, problem.code, str(problem))
        finally:
            if goals.get(name) is goal:
                del goals[name]
            self._goals.pop(number, None)
            goal.done.set()
            self._answer(given, outcome.status, goal.result(outcome))

    async def _cancel_goal(self, given: dict[str, Any]) -> None:
        goal = self._goals.get(str(given.get("id", "")))
        if goal is None:
            return self.status(f"no goal {str(given.get('id'))[:100]!r} is under way", given)
        return goal.end(CANCELED, "the client has canceled the goal")

    def _feedback(self, given: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
        head = {"op": "action_feedback", "action": given["action"], "id": given.get("id", "")}

        def tell(values: dict[str, Any]) -> None:
            data = {**head, "values": values}
            self._client.offer(f"feedback {head['id']}", lambda: msgspec.json.encode(data))

        return tell

    def _answer(
        self, given: dict[str, Any], status: int, values: Any, *, taken: bool = True
    ) -> None:
        self._client.forget(f"feedback {given.get('id', '')}")
        self._reply(
            {
                "op": "action_result",
                "id": given.get("id", ""),
                "action": given.get("action", ""),
                "values": values,
                "status": status,
                "result": taken,
            }
        )


def _cancel(subscription: Subscription) -> None:
    if subscription.late is not None:
        subscription.late.cancel()
        subscription.late = None


# ── rosapi ──────────────────────────────────────────────────────────────────────────────────────

NODE = "/understudy"
Args = Mapping[str, Any]


class RosApi:
    """The services of `rosapi`: what a client asks about topics, services, types and parameters.

    There is one node, `/understudy`. Names of types are those of ROS 2.
    """

    def __init__(self, topics: Topics, orders: Orders) -> None:
        self._topics = topics
        self._orders = orders
        inputs = {topic: kinds[0] for topic, kinds in orders.inputs.items()}
        self._all = {**inputs, **topics.types}
        actions = {name: kind for name, (kind, _, _) in orders.actions.items()}
        self._services: dict[str, Callable[[Args], dict[str, Any] | Refused]] = {
            "topics": self._every_topic,
            "topic_type": lambda args: {"type": _named(self._all, args.get("topic"))},
            "topics_for_type": lambda args: {"topics": _of_type(self._all, args)},
            "services": lambda args: {"services": self.services()},
            "service_type": lambda args: {"type": self.service_type(args.get("service"))},
            "services_for_type": lambda args: {"services": _of_type(self._types(), args)},
            "action_servers": lambda args: {"action_servers": list(orders.actions)},
            "action_type": lambda args: {"type": _named(actions, args.get("action"))},
            "nodes": lambda args: {"nodes": [NODE]},
            "node_details": self._node_details,
            "service_node": lambda args: {"node": NODE},
            "service_providers": lambda args: {"providers": [NODE]},
            "publishers": lambda args: {"publishers": self._node(topics.types, args)},
            "subscribers": lambda args: {"subscribers": self._node(orders.inputs, args)},
            "message_details": lambda args: _details(args, "message", MESSAGES),
            "service_request_details": lambda args: _details(args, "service", SERVICES, 0),
            "service_response_details": lambda args: _details(args, "service", SERVICES, 1),
            "action_goal_details": lambda args: _details(args, "action", ACTIONS, 0),
            "action_result_details": lambda args: _details(args, "action", ACTIONS, 1),
            "action_feedback_details": lambda args: _details(args, "action", ACTIONS, 2),
            "get_param_names": lambda args: {"names": [*self._parameters()]},
            "has_param": lambda args: {"exists": args.get("name") in self._parameters()},
            "get_param": self._parameter,
            "get_time": self._time,
            "get_ros_version": lambda args: {"version": 2, "distro": "understudy"},
        }

    def call(self, name: str, args: Args) -> dict[str, Any] | Refused:
        """The answer of a service, by its name without `/rosapi/`."""
        asked = self._services.get(name)
        if asked is None:
            return Refused(f"rosapi has no {name}; it has: {', '.join(self._services)}")
        return asked(args)

    def services(self) -> list[str]:
        return [*self._orders.services, *(f"/rosapi/{name}" for name in self._services)]

    def service_type(self, name: Any) -> str:
        return _named(self._types(), name)

    # ── inside ──

    def _types(self) -> dict[str, str]:
        own = {name: each.type for name, each in self._orders.services.items()}
        words = {name: "".join(part.title() for part in name.split("_")) for name in self._services}
        return own | {f"/rosapi/{name}": f"rosapi_msgs/srv/{word}" for name, word in words.items()}

    def _every_topic(self, args: Args) -> dict[str, Any]:
        names = list(self._all)
        return {
            "topics": names,
            "types": [in_ros_2(self._all[name]) for name in names],
            "typedefs_full_text": [],
        }

    def _node_details(self, args: Args) -> dict[str, Any]:
        publishing, read = list(self._topics.types), list(self._orders.inputs)
        return {"subscribing": read, "publishing": publishing, "services": self.services()}

    def _node(self, table: Mapping[str, Any], args: Args) -> list[str]:
        return [NODE] if args.get("topic") in table else []

    def _parameters(self) -> dict[str, Any]:
        """What tools ask a ROS master for."""
        config = self._topics.live.config
        return {"/use_sim_time": True, "/understudy/cell": config.name}

    def _parameter(self, args: Args) -> dict[str, Any]:
        """The value as JSON text."""
        value = self._parameters().get(str(args.get("name")), args.get("default", ""))
        text = msgspec.json.encode(value).decode()
        return {"value": text, "successful": True, "reason": ""}

    def _time(self, args: Args) -> dict[str, Any]:
        at = m.time_of(self._topics.live.operator.pump.now())
        return {"time": stamp(at, ros_1=False) | stamp(at, ros_1=True)}


def _details(
    args: Args, sort: str, table: Mapping[str, Any], part: int | None = None
) -> dict[str, Any] | Refused:
    """The fields of a type; ``part``: of a service or an action."""
    name = plain(args.get("type"))
    if name not in table:
        return Refused(f"unknown {sort} type {name[:100]!r}; there are: {', '.join(table)}")
    return {"typedefs": typedefs(name, table[name] if part is None else table[name][part])}


def _named(table: Mapping[str, str], name: Any) -> str:
    found = table.get(name) if isinstance(name, str) else None
    if found is None:
        return ""
    return found if found.count("/") == 2 else in_ros_2(found)


def _of_type(table: Mapping[str, str], args: Args) -> list[str]:
    wanted = plain(args.get("type"))
    return [name for name, kind in table.items() if plain(kind) == wanted]
