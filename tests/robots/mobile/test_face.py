"""The session of the broker: what it still owes, and what it acknowledges."""

import pytest
from tests.robots.mobile.runtime.test_fleet import Plain

from understudy.agenda import advance
from understudy.ports import WireMessage
from understudy.robots.mobile.face import ACKNOWLEDGED, FleetFace, FleetSession
from understudy.units import nanoseconds

STOP = b'{"messageId": "%d", "payload": {"commandType": "STOP"}}'
TICK = nanoseconds(0.02)


class Broker:
    """A fleet behind its face."""

    def __init__(self) -> None:
        self.fleet = Plain(connect=False).fleet
        self.face = FleetFace(self.fleet, self.fleet.subjects())
        self.now = self.sent = 0
        self.session = self.open()
        self.tick()

    def open(self) -> FleetSession:
        return self.face.open("nats", self.now)

    def send(self, reply_to: str, robot: str = "r1") -> None:
        self.sent += 1
        message = WireMessage(f"robot.{robot}.command.request", STOP % self.sent, reply_to)
        self.session.receive(message, self.now)

    def tick(self) -> list[str]:
        """The acknowledgements of the messages that were handled."""
        since, self.now = self.now, self.now + TICK
        advance([self.fleet], self.now, lambda now: None, since=since)
        found = iter(lambda: self.session.take(1 << 20), None)
        return [message.address for message in found if message.payload == ACKNOWLEDGED]


@pytest.mark.parametrize("robot", ["r1", "nobody"])
def test_a_message_without_a_reply_address_is_not_owed_for_ever(robot: str) -> None:
    broker = Broker()
    broker.send("", robot)
    broker.send("ack-2", robot)
    assert broker.session.owed() == (robot == "r1"), "a message for nobody is handled at once"
    assert broker.tick() == ["ack-2"]
    assert not broker.session.owed()


def test_messages_of_the_connection_before_are_not_counted_twice() -> None:
    broker = Broker()
    broker.send("ack-1")
    broker.session.closed(broker.now)
    broker.session = broker.open()
    assert broker.tick() == ["ack-1"]
    broker.send("ack-2")
    assert broker.session.owed()
    assert broker.tick() == ["ack-2"]
    assert not broker.session.owed()


def test_many_messages_at_once_are_those_one_by_one_and_fit_into_the_room() -> None:
    one_by_one, together = Broker(), Broker()
    for broker in (one_by_one, together):
        broker.send("ack-1")
        since, broker.now = broker.now, broker.now + 10 * TICK
        advance([broker.fleet], broker.now, lambda now: None, since=since)
    expected = list(iter(lambda: one_by_one.session.take(1 << 20), None))
    found: list[WireMessage] = []
    while messages := together.session.take_many(2000):
        assert sum(len(message.payload) for message in messages) <= 2000
        found += messages
    assert found == expected
    assert len(found) > 5
