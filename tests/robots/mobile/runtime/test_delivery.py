"""What the robots send reaches the broker, once; what the broker sends is bounded."""

import json
from typing import Any
from uuid import UUID

import pytest
from tests.robots.mobile.runtime.driven_fleet import EPOCH
from tests.robots.mobile.runtime.test_fleet import Plain

from understudy.robots.mobile.runtime.fleet import INBOX
from understudy.robots.mobile.runtime.outgoing import (
    CAPACITY,
    RETRY_NS,
    Entry,
    Outbox,
    robot_key,
    timestamp,
    uuid_text,
)
from understudy.units import NS_PER_MS


def test_ids_are_uuids_that_differ_and_can_be_repeated() -> None:
    keys = [robot_key(run, robot) for run in "ab" for robot in ("r", "s")]
    ids = {uuid_text(key, number) for key in keys for number in range(500)}
    assert len(ids) == 2000
    assert uuid_text(robot_key("a", "r"), 1) == uuid_text(keys[0], 1)
    for each in list(ids)[:50]:
        assert str(UUID(each)) == each
        assert (each[14], each[19] in "89ab") == ("8", True)


def test_time_stamps_have_milliseconds() -> None:
    assert timestamp(EPOCH, 1_234 * NS_PER_MS) == "2026-01-01T00:00:01.234Z"
    assert timestamp(EPOCH, 999_999) == "2026-01-01T00:00:00.000Z"


def test_every_message_has_its_own_id_and_streams_are_not_stored() -> None:
    fleet = Plain({}, {})
    seen: list[tuple[str, str]] = []
    original = fleet.fleet.take

    def take(room: int) -> object:
        message = original(room)
        if message is not None:
            seen.append((message.address, message.reply_to))
        return message

    fleet.fleet.take = take  # type: ignore[method-assign,assignment]
    fleet.run(1.0)
    ids = [envelope["messageId"] for _, _, envelope in fleet.log]
    assert len(set(ids)) == len(ids)
    stored = {address.split(".", 2)[2] for address, reply_to in seen if reply_to}
    once = {address.split(".", 2)[2] for address, reply_to in seen if not reply_to}
    assert stored == {"events", "settings.reported"}
    assert once == {"heartbeat", "state", "telemetry", "traffic.state"}
    assert {r for _, r in seen if r} == {
        e["messageId"] for _, address, e in fleet.log if address.split(".", 2)[2] in stored
    }


def test_an_unconfirmed_message_is_sent_again_with_the_same_id() -> None:
    fleet = Plain(confirms=False).run(0.1)
    fleet.command("STOP")
    fleet.run(1.9)
    first = [e["messageId"] for _, a, e in fleet.log if a.endswith("command.ack")]
    fleet.run(1.0)
    again = [e["messageId"] for _, a, e in fleet.log if a.endswith("command.ack")]
    assert len(first) == 3
    assert again == first * 2
    assert fleet.fleet.status(0).waiting > 0


def test_after_a_lost_connection_stored_messages_come_and_old_states_do_not() -> None:
    fleet = Plain(confirms=False).run(0.1)
    fleet.command("STOP")
    fleet.fleet.wake(fleet.now)
    fleet.connect(False)
    fleet.run(0.5)
    fleet.confirms = True
    before = len(fleet.log)
    fleet.connect()
    fleet.run(0.1)
    states = [now for now, a, _ in fleet.log[before:] if a.endswith("state") and now < 600_000_000]
    assert states == []
    assert fleet.acks()[-3:] == ["STOP:ACKED", "STOP:RUNNING", "STOP:DONE"]
    assert fleet.fleet.status(0).waiting == 0


def test_what_is_given_up_is_counted_and_said() -> None:
    lines: list[str] = []
    fleet = Plain(confirms=False, log=lines.append).run(0.1)
    fleet.connect(False)
    for number in range(CAPACITY // 7 + 500):
        fleet.send_raw("robot.r1.command.request", f"{number}".encode())
        fleet.command("STOP")
        if number % 300 == 0:
            fleet.run(0.02)
    fleet.run(0.02)
    fleet.connect()
    fleet.run(0.6)
    lost = fleet.fleet.status(0).given_up
    assert lost > 0
    assert fleet.payloads("telemetry")[-1]["health"]["messagesGivenUp"] == lost
    assert lines[0] == "nats: too many messages wait; 1 of the oldest were dropped"
    assert len(lines) == lost.bit_length(), "at 1, 2, 4, 8 …"


def test_the_inbox_has_a_bound() -> None:
    fleet = Plain().run(0.1)
    assert fleet.fleet.credit() == INBOX
    for _ in range(INBOX):
        fleet.command("STOP")
    assert fleet.fleet.credit() == 0
    fleet.run(2.0)
    assert fleet.fleet.credit() == INBOX
    assert len(fleet.acked) == INBOX


def test_many_waiting_messages_cost_nothing_until_they_are_due() -> None:
    """Calls of take_due in which nothing is due look at no waiting message: counted, not timed."""

    class Counted(dict[str, int]):
        looked = 0

        def items(self):  # type: ignore[no-untyped-def]
            for each in super().items():
                Counted.looked += 1
                yield each

    outbox = Outbox()
    outbox._sent_at = Counted()
    for number in range(CAPACITY):
        outbox.put(Entry(f"m-{number}", "s", b"{}"))
    outbox.take_due(0)
    Counted.looked = 0
    for now in range(1, 1001):
        assert outbox.take_due(now) == []
    assert Counted.looked == 1000
    assert len(outbox.take_due(RETRY_NS)) == 256


def test_the_last_messages_of_a_fleet() -> None:
    fleet = Plain({}, {}).run(0.1)
    before = len(fleet.log)
    fleet.fleet.shut_down(fleet.now)
    fleet._settled(fleet.now)
    last = [(a, e["payload"].get("type")) for _, a, e in fleet.log[before:]]
    assert last == [
        ("robot.r1.state", None),
        ("robot.r2.state", None),
        ("robot.r1.events", "simulation.stopped"),
        ("robot.r2.events", "simulation.stopped"),
    ]
    assert fleet.fleet.next_wake() is None
    assert not fleet.fleet.busy()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"messageId": 5, "payload": {}}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"messageId": "m", "payload": {"commandType": 7}}',
        b'{"messageId": "\xff", "payload": {"commandType": "STOP"}}',
        b'{"messageId": "m", "payload": {"commandType": "ST\xffOP"}}',
        b'{"messageId": "m", "payload": {"commandType": "STOP", "parameters": {"\xc3": 1}}}',
        b'{"messageId": "m", "payload": {}, "payloadVersion": 2}',
        b'{"messageId": "m", "robotId": "other", "payload": {"commandType": "STOP"}}',
    ],
)
def test_malformed_messages_are_acknowledged_and_said(data: bytes) -> None:
    fleet = Plain().run(0.1)
    fleet.send_raw("robot.r1.command.request", data)
    fleet.send_raw("robot.r1.no.such.kind", data)
    fleet.run(0.1)
    assert len(fleet.acked) == 2
    malformed = [e for e in fleet.payloads("events") if e["type"] == "message.malformed"]
    assert [event["kind"] for event in malformed] == ["command.request", "no.such.kind"]
    assert all(event["reason"] for event in malformed)


@pytest.mark.parametrize(
    ("payload", "name", "reason"),
    [
        ({"commandType": "STOP", "parameters": 5}, "STOP", "parameters"),
        ({"commandType": "STOP", "requestedBy": 5}, "STOP", "requestedBy"),
        ({"commandType": "STOP", "requestedBy": {"username": "Ann"}}, "STOP", "userId"),
        ({"commandType": 7}, "UNKNOWN", "commandType"),
        ({}, "UNKNOWN", "commandType"),
        ([], "UNKNOWN", "object"),
    ],
)
def test_a_command_with_a_wrong_payload_is_rejected(payload: Any, name: str, reason: str) -> None:
    fleet = Plain().run(0.1)
    fleet.send("command.request", payload)
    fleet.run(0.1)
    (ack,) = fleet.payloads("command.ack")
    assert (ack["commandType"], ack["status"]) == (name, "REJECTED")
    assert ack["reason"].startswith("INVALID_PARAMETERS: ")
    assert reason in ack["reason"]
    (whole,) = [each for _, subject, each in fleet.log if subject == "robot.r1.command.ack"]
    assert whole["correlationId"] == "b-1"


@pytest.mark.parametrize("wrong", [{"payloadVersion": 2}, {"robotId": "other"}])
def test_a_command_that_is_not_for_this_robot_is_not_rejected(wrong: dict[str, Any]) -> None:
    message = {"messageId": "m", "payload": {"commandType": "STOP"}} | wrong
    fleet = Plain().run(0.1)
    fleet.send_raw("robot.r1.command.request", json.dumps(message).encode())
    fleet.run(0.1)
    assert fleet.acks() == []
    assert fleet.events()[-1] == "message.malformed"


@pytest.mark.parametrize("user", ["ann", {"userId": "u-1"}, {"userId": "u-1", "username": "Ann"}])
def test_who_asked_is_a_text_or_an_object(user: Any) -> None:
    fleet = Plain().run(0.1)
    fleet.send("command.request", {"commandType": "STOP", "requestedBy": user})
    fleet.run(0.1)
    assert fleet.acks()[-1] == "STOP:DONE"


@pytest.mark.parametrize("count", [4000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_a_flood_of_commands_loses_no_ack(count: int) -> None:
    """The backend sends as fast as it may; the broker stores at most `IN_FLIGHT` a tick."""
    fleet = Plain().run(0.1)
    names = ["STOP", "MOVE_TO_POSE", "SET_SPEED_LIMIT", "BOGUS"]
    while fleet.sent < count:
        for _ in range(min(fleet.fleet.credit(), count - fleet.sent)):
            fleet.command(names[fleet.sent % 4], x=5, y=5, maxSpeedMps=1)
        fleet.run(0.02)
    fleet.command("STOP")
    while fleet.fleet.status(fleet.now).waiting:
        fleet.run(0.2)
    assert fleet.fleet.status(fleet.now).given_up == 0
    assert len(fleet.acked) == count + 1
    found = [ack["status"] for ack in fleet.payloads("command.ack")]
    assert sum(map(found.count, ("REJECTED", "DONE", "CANCELED"))) == count + 1


def test_a_command_comes_through_while_no_answer_is_stored() -> None:
    fleet = Plain(confirms=False).run(0.1)
    while fleet.fleet.status(fleet.now).given_up == 0:
        assert fleet.fleet.credit() >= 1
        for _ in range(fleet.fleet.credit()):
            fleet.command("BOGUS")
        fleet.run(0.02)
    assert fleet.fleet.credit() == 1
