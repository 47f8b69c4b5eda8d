"""The services of `rosapi`: what a client asks about topics, services, types and parameters.

There is one node, `/understudy`. Names of types are those of ROS 2.
"""

from collections.abc import Callable, Mapping
from typing import Any

from understudy.doors import messages as m
from understudy.doors.rosbridge.orders import Orders
from understudy.doors.rosbridge.topics import Topics
from understudy.doors.rosbridge.types import (
    ACTIONS,
    MESSAGES,
    SERVICES,
    in_ros_2,
    plain,
    stamp,
    typedefs,
)
from understudy.errors import Refused

NODE = "/understudy"
Args = Mapping[str, Any]


class RosApi:
    """`call`: a service by its name without `/rosapi/`."""

    def __init__(self, topics: Topics, orders: Orders) -> None:
        self._topics = topics
        self._orders = orders
        inputs = {topic: kinds[0] for topic, kinds in orders.inputs.items()}
        self._all = {**inputs, **topics.types}
        self._services: dict[str, Callable[[Args], dict[str, Any] | Refused]] = {
            "topics": self._every_topic,
            "topic_type": lambda args: {"type": _named(self._all, args.get("topic"))},
            "topics_for_type": lambda args: {"topics": _of_type(self._all, args)},
            "services": lambda args: {"services": self.services()},
            "service_type": lambda args: {"type": self.service_type(args.get("service"))},
            "services_for_type": lambda args: {"services": _of_type(self._types(), args)},
            "action_servers": lambda args: {"action_servers": list(orders.actions)},
            "action_type": lambda args: {"type": _named(self._actions(), args.get("action"))},
            "nodes": lambda args: {"nodes": [NODE]},
            "node_details": self._details,
            "service_node": lambda args: {"node": NODE},
            "service_providers": lambda args: {"providers": [NODE]},
            "publishers": lambda args: {"publishers": self._node(topics.types, args)},
            "subscribers": lambda args: {"subscribers": self._node(orders.inputs, args)},
            "message_details": self._message,
            "service_request_details": lambda args: self._service(args, 0),
            "service_response_details": lambda args: self._service(args, 1),
            "action_goal_details": lambda args: self._action(args, 0),
            "action_result_details": lambda args: self._action(args, 1),
            "action_feedback_details": lambda args: self._action(args, 2),
            "get_param_names": lambda args: {"names": [*self._parameters()]},
            "has_param": lambda args: {"exists": args.get("name") in self._parameters()},
            "get_param": self._parameter,
            "get_time": self._time,
            "get_ros_version": lambda args: {"version": 2, "distro": "understudy"},
        }

    def call(self, name: str, args: Args) -> dict[str, Any] | Refused:
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

    def _actions(self) -> dict[str, str]:
        return {name: kind for name, (kind, _, _) in self._orders.actions.items()}

    def _every_topic(self, args: Args) -> dict[str, Any]:
        names = list(self._all)
        return {
            "topics": names,
            "types": [in_ros_2(self._all[name]) for name in names],
            "typedefs_full_text": [],
        }

    def _details(self, args: Args) -> dict[str, Any]:
        publishing, read = list(self._topics.types), list(self._orders.inputs)
        return {"subscribing": read, "publishing": publishing, "services": self.services()}

    def _node(self, table: Mapping[str, Any], args: Args) -> list[str]:
        return [NODE] if args.get("topic") in table else []

    def _message(self, args: Args) -> dict[str, Any] | Refused:
        name = plain(args.get("type"))
        if name not in MESSAGES:
            return Refused(f"unknown message type {name[:100]!r}; there are: {', '.join(MESSAGES)}")
        return {"typedefs": typedefs(name)}

    def _service(self, args: Args, part: int) -> dict[str, Any] | Refused:
        name = plain(args.get("type"))
        if name not in SERVICES:
            return Refused(f"unknown service type {name[:100]!r}; there are: {', '.join(SERVICES)}")
        return {"typedefs": typedefs(name, SERVICES[name][part])}

    def _action(self, args: Args, part: int) -> dict[str, Any] | Refused:
        name = plain(args.get("type"))
        if name not in ACTIONS:
            return Refused(f"unknown action type {name[:100]!r}; there are: {', '.join(ACTIONS)}")
        return {"typedefs": typedefs(name, ACTIONS[name][part])}

    def _parameters(self) -> dict[str, Any]:
        """What tools ask a ROS master for."""
        config = self._topics.live.config
        return {"/use_sim_time": True, "/understudy/cell": config.name}

    def _parameter(self, args: Args) -> dict[str, Any]:
        """The value as JSON text."""
        import msgspec

        value = self._parameters().get(str(args.get("name")), args.get("default", ""))
        text = msgspec.json.encode(value).decode()
        return {"value": text, "successful": True, "reason": ""}

    def _time(self, args: Args) -> dict[str, Any]:
        at = m.time_of(self._topics.live.operator.pump.now())
        return {"time": stamp(at, ros_1=False) | stamp(at, ros_1=True)}


def _named(table: Mapping[str, str], name: Any) -> str:
    found = table.get(name) if isinstance(name, str) else None
    if found is None:
        return ""
    return found if found.count("/") == 2 else in_ros_2(found)


def _of_type(table: Mapping[str, str], args: Args) -> list[str]:
    wanted = plain(args.get("type"))
    return [name for name, kind in table.items() if plain(kind) == wanted]
