"""The Foxglove door: channels, services, parameters, locks, bounds, nonsense.

`Viewer` speaks the protocol as the clients of Foxglove do; a soak test lets it speak to a server of
Foxglove's SDK as well, and lets the npm client read the door.
"""

import asyncio
import json
import struct
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest
from tests import live_doors
from tests.live_doors import BENCH, TOKEN
from tests.scratch_packages import npm_packages, python_packages
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from understudy.app.live import Live
from understudy.doors.channels import channels_of
from understudy.doors.foxglove.server import (
    EVENTS_KEPT,
    MOST_CALLS,
    SUBPROTOCOLS,
    open_door,
    viewable,
)
from understudy.errors import ConfigError
from understudy.ports.hmi import Later

SDK, OLD = SUBPROTOCOLS

in_cell = partial(live_doors.in_cell, open_door)


def opened(address: str, *subprotocols: str, **options: Any) -> connect:
    names: Any = subprotocols or (SDK,)
    return connect(address, subprotocols=names, max_size=None, **options)


class Viewer(live_doors.JsonClient):
    """A client that speaks the protocol."""

    def __init__(self, socket: ClientConnection) -> None:
        super().__init__(socket)
        self.channels: dict[str, dict[str, Any]] = {}
        self.services: dict[str, int] = {}
        self.now = -1
        self._calls = iter(range(1, 1_000_000))

    async def receive(self) -> None:
        data = await self.socket.recv()
        message = json.loads(data) if isinstance(data, str) else _unpacked(data)
        self.heard.append(message)
        if message["op"] == "advertise":
            self.channels |= {each["topic"]: each for each in message["channels"]}
        elif message["op"] == "advertiseServices":
            self.services |= {each["name"]: each["id"] for each in message["services"]}
        elif message["op"] == "time":
            self.heard.remove(message)
            self.now = message["at"]

    async def subscribe(self, topic: str) -> int:
        while topic not in self.channels:
            await self.receive()
        number = self.channels[topic]["id"]
        await self.send("subscribe", subscriptions=[{"id": 1000 + number, "channelId": number}])
        return 1000 + int(number)

    async def message(self, topic: str) -> Any:
        """The next value of a topic, which its schema describes."""
        found = await self.next(op="message", id=await self.subscribe(topic))
        value = json.loads(found["data"])
        jsonschema.validate(value, json.loads(self.channels[topic]["schema"]))
        return value

    async def call(self, service: str, /, **parameters: Any) -> Any:
        """The answer; or the words of the refusal."""
        while service not in self.services:
            await self.receive()
        return await self.call_number(self.services[service], json.dumps(parameters).encode())

    async def call_number(self, number: int, payload: bytes, encoding: bytes = b"json") -> Any:
        call = next(self._calls)
        head = struct.pack("<BIII", 2, number, call, len(encoding))
        await self.socket.send(head + encoding + payload)
        found = await self.next(callId=call)
        assert found["serviceId"] == number
        if found["op"] == "serviceCallFailure":
            return found["message"]
        assert found["encoding"] == "json"
        return json.loads(found["data"])

    async def refused(self, op: str, **values: Any) -> str:
        await self.send(op, **values)
        return str((await self.next(op="status"))["message"])

    async def rate(self) -> Any:
        return (await self.next(op="parameterValues"))["parameters"][0]["value"]


def _unpacked(data: bytes) -> dict[str, Any]:
    if data[0] == 1:
        subscription, at = struct.unpack_from("<IQ", data, 1)
        return {"op": "message", "id": subscription, "at": at, "data": data[13:]}
    if data[0] == 2:
        return {"op": "time", "at": struct.unpack_from("<Q", data, 1)[0]}
    assert data[0] == 3
    service, call, length = struct.unpack_from("<III", data, 1)
    encoding, rest = data[13 : 13 + length].decode(), data[13 + length :]
    return {
        "op": "answer",
        "serviceId": service,
        "callId": call,
        "encoding": encoding,
        "data": rest,
    }


def with_viewer(scene: Callable[[Live, Viewer], Awaitable[None]], **options: Any) -> None:
    async def run(live: Live, address: str) -> None:
        async with opened(address) as socket:
            await scene(live, Viewer(socket))

    in_cell(run, **options)


# ── channels ────────────────────────────────────────────────────────────────────────────────────


def test_both_generations_of_clients_are_served() -> None:
    async def scene(live: Live, address: str) -> None:
        for offered, chosen in (((OLD,), OLD), ((SDK,), SDK), ((OLD, SDK), SDK)):
            async with opened(address, *offered) as socket:
                assert socket.subprotocol == chosen
                info = await Viewer(socket).next(op="serverInfo")
                assert set(info["capabilities"]) == {
                    "time", "services", "parameters", "parametersSubscribe"
                }  # fmt: skip
        for wrong in ((), ("rosbridge",)):
            with pytest.raises(InvalidStatus) as refused:
                await connect(address, subprotocols=wrong or None)  # type: ignore[arg-type]
            assert refused.value.response.status_code == 400
            assert SDK.encode() in (refused.value.response.body or b"")

    in_cell(scene, cell=BENCH)


def test_an_arm_with_a_camera_is_seen() -> None:
    async def scene(live: Live, viewer: Viewer) -> None:
        joints = await viewer.message("/g60/joint_states")
        model: Any = live.operator.robots.find("g60")
        assert [each["name"] for each in joints["joints"]] == list(model.model.chain.names)
        robots = await viewer.message("/scene/robots")
        assert any(each["models"] or each["cylinders"] for each in robots["entities"])
        frames = {each["child_frame_id"] for each in (await viewer.message("/tf"))["transforms"]}
        assert {each["frame_id"] for each in robots["entities"]} <= frames
        picture = await viewer.message("/g60/camera/image")
        assert (picture["format"], len(picture["data"]) > 1000) == ("jpeg", True)
        assert len((await viewer.message("/g60/camera/calibration"))["K"]) == 9
        assert (await viewer.message("/g60/io"))["digital_inputs"]
        known = channels_of(live).channels.values()
        assert {each.topic for each in known if not each.native} == set(viewer.channels)

    with_viewer(scene, cell="pick_place")


def test_a_mobile_robot_is_seen() -> None:
    async def scene(live: Live, viewer: Viewer) -> None:
        assert "pose" in await viewer.message("/robot-1/pose")
        scans = [await viewer.message(t) for t in list(viewer.channels) if "robot-1/scan/" in t]
        assert scans
        assert all(len(each["ranges"]) > 10 for each in scans)

    with_viewer(scene, cell="mobile_robot")


def test_times_are_simulated_ones_and_events_come() -> None:
    async def scene(live: Live, viewer: Viewer) -> None:
        log = await viewer.subscribe("/commands")
        while viewer.now < 10**9:
            await viewer.receive()
        assert viewer.now <= live.operator.pump.now()
        before = viewer.now
        assert (await viewer.call("/pause"))["state"] == "PAUSED"
        found = await viewer.next(op="message", id=log)
        assert json.loads(found["data"])["name"] == "pause"
        assert before <= found["at"] <= live.operator.pump.now()
        await viewer.send("unsubscribe", subscriptionIds=[log])
        await viewer.call("/resume")
        await viewer.call("/now")
        assert not [each for each in viewer.heard if each["op"] == "message"]

    with_viewer(scene, cell=BENCH)


def test_a_channel_that_appears_later_is_advertised() -> None:
    async def scene(live: Live, viewer: Viewer) -> None:
        await viewer.subscribe("/bench/tool_pose")
        first = await viewer.next(op="advertise")
        assert "/bench/tool_pose" not in {each["topic"] for each in first["channels"]}

    with_viewer(scene, cell=BENCH)


def test_the_cell_is_read_only_while_a_client_is_there() -> None:
    async def scene(live: Live, address: str) -> None:
        def is_read() -> bool:
            return channels_of(live).heard

        async with opened(address) as socket:
            await Viewer(socket).message("/bench/tool_pose")
            assert is_read()
        while is_read():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        async with opened(address) as socket:
            viewer = Viewer(socket)
            await viewer.message("/bench/tool_pose")
            log = await viewer.subscribe("/commands")
            for name in ("pause", "resume"):
                await viewer.call(f"/{name}")
            for name in ("pause", "resume"):  # each once: the first client's listener is gone
                found = await viewer.next(op="message", id=log)
                assert json.loads(found["data"])["name"] == name

    in_cell(scene, cell=BENCH)


# ── services and parameters ─────────────────────────────────────────────────────────────────────


def test_services_are_the_commands_of_the_cell() -> None:
    async def scene(live: Live, viewer: Viewer) -> None:
        assert (await viewer.call("/pause"))["state"] == "PAUSED"
        assert await viewer.call("/events", after=0)
        assert isinstance((await viewer.call("/commands"))["result"], list)
        assert set(viewer.services) == {f"/{each.name}" for each in live.commands}
        await viewer.call("/emergency_stop", robot="bench")
        bench: Any = live.operator.robots.find("bench")
        assert bench.condition().state == "EmergencyStopped"
        assert "did you mean" in await viewer.call("/emergency_stop", robbot="bench")
        number = viewer.services["/pause"]
        assert "not JSON" in await viewer.call_number(number, b"{")
        assert "JSON object" in await viewer.call_number(number, b"[]")
        assert "allowed: 'json'" in await viewer.call_number(number, b"{}", b"ros1")
        assert "no service 0" in await viewer.call_number(0, b"{}")
        assert "not the secret" in await viewer.call("/pause", secret="wrong")

    with_viewer(scene, cell=BENCH)


def test_commands_to_real_robots_need_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(live: Live, address: str) -> None:
        monkeypatch.setattr(live.commands, "needs_secret", lambda name: name == "pause")
        async with opened(address) as socket:
            viewer = Viewer(socket)
            assert "needs the secret" in await viewer.call("/pause")
            assert (await viewer.call("/pause", secret="the secret"))["state"] == "PAUSED"
        async with opened(f"{address}/?token=the+secret") as socket:
            assert (await Viewer(socket).call("/pause"))["state"] == "PAUSED"

    in_cell(scene, cell=BENCH, secret="the secret")


def test_the_rate_is_a_parameter() -> None:
    async def scene(live: Live, viewer: Viewer) -> None:
        await viewer.send("getParameters", parameterNames=[], id="a")
        values = await viewer.next(op="parameterValues", id="a")
        assert values["parameters"] == [{"name": "rate", "value": 10.0, "type": "float64"}]
        await viewer.send("subscribeParameterUpdates", parameterNames=["rate"])
        assert await viewer.rate() == 10.0
        await viewer.send("setParameters", parameters=[{"name": "rate", "value": 3}], id="b")
        values = await viewer.next(op="parameterValues", id="b")
        assert values["parameters"][0]["value"] == live.rate == 3.0
        assert await viewer.rate() == 3.0
        await viewer.call("/rate", rate="max")  # by whomever
        assert await viewer.rate() == "max"
        wrong = [{"name": "rate", "value": "fast"}]
        assert "'max', 'step'" in await viewer.refused("setParameters", parameters=wrong)
        assert "there is: rate" in await viewer.refused("getParameters", parameterNames=["x"])
        await viewer.send("unsubscribeParameterUpdates", parameterNames=[])

    with_viewer(scene, cell=BENCH)


def test_schemas_of_services_are_those_that_viewers_read() -> None:
    point = {"type": "object", "properties": {"x": {"type": "number"}}}
    given = {
        "$ref": "#/$defs/Move",
        "$defs": {
            "Point": point,
            "Move": {
                "type": "object",
                "properties": {
                    "to": {"$ref": "#/$defs/Point"},
                    "robot": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "names": {"type": "array", "items": {"type": "string"}},
                    "any": {"type": "array"},
                    "straight": {"type": "boolean", "default": False},
                },
            },
        },
    }
    assert viewable(given) == {
        "type": "object",
        "properties": {
            "to": point,
            "names": {"type": "array", "items": {"type": "string"}},
            "straight": {"type": "boolean", "default": False},
        },
    }


# ── bad operations, locks, bounds ───────────────────────────────────────────────────────────────


def test_bad_operations_are_refused_in_words() -> None:
    async def scene(live: Live, viewer: Viewer) -> None:
        number = await viewer.subscribe("/log")
        channel = viewer.channels["/log"]["id"]
        for op, words, values in (
            ("advertise", "not possible here; there are: subscribe", {"channels": []}),
            ("subscribeConnectionGraph", "not possible here", {}),
            ("fetchAsset", "not possible here", {"uri": "x", "requestId": 1}),
            ("subscribe", "missing required field", {}),
            ("subscribe", "no channel 999", {"subscriptions": [{"id": 1, "channelId": 999}]}),
            ("subscribe", "exists", {"subscriptions": [{"id": number, "channelId": channel}]}),
            ("subscribe", "already", {"subscriptions": [{"id": 7, "channelId": channel}]}),
            ("subscribe", "allowed: 0", {"subscriptions": [{"id": -1, "channelId": channel + 1}]}),
            ("unsubscribe", "no subscription 8", {"subscriptionIds": [8]}),
        ):
            assert words in await viewer.refused(op, **values)
        for data, words in ((b"", "0 bytes"), (b"\x01abc", "service call"), (b"[]", "service")):
            await viewer.socket.send(data)
            assert words in (await viewer.next(op="status"))["message"]
        head = struct.pack("<BIII", 2, 1, 1, 1000)
        await viewer.socket.send(head + b"json")
        assert "too short" in (await viewer.next(op="status"))["message"]

    with_viewer(scene, cell=BENCH)


def test_a_door_that_others_can_reach_wants_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(live: Live, address: str) -> None:
        here = f"ws://127.0.0.1:{address.rpartition(':')[2]}"
        for place in (here, f"{here}/?token=wrong"):
            with pytest.raises(InvalidStatus) as refused:
                await opened(place)
            assert refused.value.response.status_code == 401
        for place, headers in (
            (f"{here}/?token={TOKEN}", {}),
            (here, {"Authorization": f"Bearer {TOKEN}"}),
        ):
            async with opened(place, additional_headers=headers) as socket:
                assert (await Viewer(socket).call("/pause"))["state"] == "PAUSED"

    with pytest.raises(ConfigError, match="can be reached from other machines"):
        in_cell(scene, cell=BENCH, value="0.0.0.0:0")
    monkeypatch.setenv("UNDERSTUDY_TOKEN", TOKEN)
    in_cell(scene, cell=BENCH, value="0.0.0.0:0")


def test_pages_of_other_sites_need_the_secret() -> None:
    async def scene(live: Live, address: str) -> None:
        site = "https://app.foxglove.dev"
        with pytest.raises(InvalidStatus):
            await opened(address, origin=site)
        async with opened(f"{address}/?token=the-secret", origin=site) as socket:
            assert (await Viewer(socket).next(op="serverInfo"))["sessionId"]

    in_cell(scene, cell=BENCH, secret="the-secret")


def test_an_emergency_stop_passes_a_flood_of_a_client_that_reads_nothing() -> None:
    async def scene(live: Live, address: str) -> None:
        async with opened(address) as deaf, opened(address) as other:

            async def stop() -> None:
                assert isinstance(await Viewer(other).call("/emergency_stop"), dict)

            number = next(n for n, each in enumerate(live.commands, 1) if each.name == "robots")
            question = struct.pack("<BIII", 2, number, 1, 4) + b"json{}"
            await live_doors.check_stop_beside_a_deaf_flood(deaf, question, stop)

    in_cell(scene, cell=BENCH)


@pytest.mark.soak
def test_an_emergency_stop_beside_a_flood_takes_less_than_50_ms() -> None:
    async def scene(live: Live, address: str) -> None:
        async with opened(address) as socket:
            viewer = Viewer(socket)

            async def stop() -> None:
                assert isinstance(await viewer.call("/emergency_stop"), dict)

            message = '{"op": "subscribe", "subscriptions": []}'
            await live_doors.check_stops_beside_a_flood(
                address, message, stop, lambda: viewer.call("/reset"), SDK
            )

    in_cell(scene, cell=BENCH)


def test_what_a_client_does_not_take_in_time_is_dropped_and_counted() -> None:
    async def scene(live: Live, viewer: Viewer) -> None:
        await viewer.subscribe("/commands")
        await viewer.call("/now")
        for _ in range(2 * EVENTS_KEPT):  # nothing is sent meanwhile
            live.commands.call("resume", {}, "operator")
        said = await viewer.next(op="status", id="dropped")
        assert said["level"] == 1
        assert int(said["message"].split()[0]) >= EVENTS_KEPT

    with_viewer(scene, cell=BENCH)


def test_calls_that_wait_for_their_answers_are_bounded() -> None:
    async def scene(live: Live, viewer: Viewer) -> None:
        waiting: list[Later] = []
        real_call = live.commands.call

        def call(name: str, parameters: Any, role: str) -> Any:
            if name != "scene":
                return real_call(name, parameters, role)
            waiting.append(Later())
            return waiting[-1]

        live.commands.call = call  # type: ignore[method-assign]
        await viewer.call("/now")
        number = viewer.services["/scene"]
        for each in range(MOST_CALLS):
            head = struct.pack("<BIII", 2, number, 5000 + each, 4)
            await viewer.socket.send(head + b"json")
        assert f"{MOST_CALLS} calls wait" in await viewer.call("/scene")
        for later in waiting:
            later.settle({"done": True})
        for each in range(MOST_CALLS):
            assert (await viewer.next(callId=5000 + each))["op"] == "answer"
        assert await viewer.call("/now")

    with_viewer(scene, cell=BENCH)


OPS = (
    "subscribe", "unsubscribe", "getParameters", "setParameters", "subscribeParameterUpdates",
    "unsubscribeParameterUpdates", "advertise", "unadvertise", "fetchAsset", "serverInfo",
)  # fmt: skip
KEYS = (
    "subscriptions", "subscriptionIds", "parameterNames", "parameters", "id", "channelId", "name",
    "value", "type",
)  # fmt: skip
VALUES = (None, True, -1, 0, 1, 2**32, 2**70, 1e300, "", "rate", "max", "x" * 300)


def test_nonsense_is_answered_and_ends_nothing() -> None:
    chance = Random(7)
    operations = live_doors.nonsense(chance, OPS, VALUES, KEYS)
    operations += [b"\x02" * 12, b"\x02" + b"\xff" * 100]

    async def scene(live: Live, address: str) -> None:
        harmless = [number for number, each in enumerate(live.commands, 1) if each.role == "viewer"]
        for call in range(10_000, 10_100):
            number = chance.choice((0, 2**31, *harmless))
            head = struct.pack("<BIII", 2, number, call, chance.choice((0, 4, 4, 2**31)))
            body = chance.choice((b"", b"json", b"json{", b"json[]", b"json\xff", b'json{"a":1}'))
            operations.append(head + body + chance.randbytes(chance.choice((0, 0, 3))))
        async with opened(address) as socket:
            viewer = Viewer(socket)
            for each in operations:
                await socket.send(each)
            assert await viewer.call("/now")
        large = await opened(address, close_timeout=1)
        await live_doors.check_too_large_a_message_ends_the_connection(large)
        async with opened(address) as socket:
            assert await Viewer(socket).call("/now")

    in_cell(scene, cell=BENCH)


# ── clients and servers of Foxglove ─────────────────────────────────────────────────────────────


@pytest.mark.soak
def test_the_npm_client_reads_joints_scene_and_picture(tmp_path: Path) -> None:
    environment = npm_packages(tmp_path / "npm", "@foxglove/ws-protocol", "ws")
    script = str(Path(__file__).with_name("viewer.js"))
    topics = ("/g60/joint_states", "/scene/robots", "/tf", "/g60/camera/image")

    async def scene(live: Live, address: str) -> None:
        found = await live_doors.printed("node", script, address, *topics, env=environment)
        assert found["info"]["capabilities"]
        values = found["values"]
        arm: Any = live.operator.robots.find("g60")
        names = [each["name"] for each in values["/g60/joint_states"]["joints"]]
        assert names == list(arm.model.chain.names)
        assert values["/scene/robots"]["entities"]
        assert values["/tf"]["transforms"]
        assert len(values["/g60/camera/image"]["data"]) > 1000
        assert found["paused"]["state"] == "PAUSED"
        assert "unknown" in found["refused"]
        assert [each["value"] for each in found["parameters"]] == [10]
        assert found["time"] > 0

    in_cell(scene, cell="pick_place")


SDK_SERVER = """
import sys
import foxglove
from foxglove.websocket import Capability, MessageSchema, Service, ServiceSchema

schema = foxglove.Schema(name="x", encoding="jsonschema", data=b'{"type": "object"}')
message = MessageSchema(encoding="json", schema=schema)
service = Service(
    name="/echo",
    schema=ServiceSchema(name="echo", request=message, response=message),
    handler=lambda request: request.payload,
)
server = foxglove.start_server(
    host="127.0.0.1", port=0, name="sdk", supported_encodings=["json"], services=[service],
    capabilities=[Capability.Time, Capability.Services, Capability.Parameters],
)
channel = foxglove.Channel("/x", schema={"type": "object", "properties": {}})
print(server.port, flush=True)
while sys.stdin.readline():
    server.broadcast_time(7)
    channel.log({"x": 1.5}, log_time=5)
"""


@pytest.mark.soak
def test_a_server_of_the_sdk_speaks_as_this_door_does(tmp_path: Path) -> None:
    """The client of these tests at a server of Foxglove: the same messages with the same keys."""
    environment = python_packages(tmp_path / "sdk", "foxglove-sdk")

    async def shape(viewer: Viewer) -> Any:
        info = await viewer.next(op="serverInfo")
        advertised = await viewer.next(op="advertise")
        services = await viewer.next(op="advertiseServices")
        rows = advertised["channels"][0], services["services"][0]
        bad = []
        for data in ('{"op": "nothing"}', "{", b"\x09", '{"op": "subscribeConnectionGraph"}'):
            await viewer.socket.send(data)
            status = await viewer.next(op="status")
            bad.append((set(status), status["level"]))
        assert isinstance(await viewer.call_number(60_000, b"{}"), str)  # serviceCallFailure
        await viewer.send("getParameters", parameterNames=[], id="a")
        kinds = set(rows[1]["request"])
        return set(info), set(info["capabilities"]), *map(set, rows), kinds, bad

    async def theirs() -> Any:
        server = await asyncio.create_subprocess_exec(
            sys.executable, "-c", SDK_SERVER,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
        )  # fmt: skip
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            address = f"ws://127.0.0.1:{int(await server.stdout.readline())}"
            with pytest.raises(InvalidStatus) as refused:
                await opened(address, OLD)
            assert refused.value.response.status_code == 400
            async with opened(address) as socket:
                viewer = Viewer(socket)
                found = await shape(viewer)
                number = await viewer.subscribe("/x")
                server.stdin.write(b"\n")
                message = await viewer.next(op="message", id=number)
                assert (message["at"], json.loads(message["data"])) == (5, {"x": 1.5})
                assert await viewer.call("/echo", x=1) == {"x": 1}
            return found
        finally:
            server.kill()
            await server.wait()

    async def scene(live: Live, address: str) -> None:
        async with opened(address) as socket:
            mine = await shape(Viewer(socket))
        assert mine == await theirs()

    in_cell(scene, cell=BENCH)
