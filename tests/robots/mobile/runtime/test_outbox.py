"""The outbox: nothing is lost, whatever happens to the connection."""

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from understudy.robots.mobile.runtime.outgoing import (
    IN_FLIGHT,
    RETRY_NS,
    Entry,
    Outbox,
    SavedOutbox,
)
from understudy.units import NS_PER_SECOND


def entry(number: int) -> Entry:
    return Entry(f"m-{number}", "robot.r.events", b"{}")


def filled(count: int) -> Outbox:
    outbox = Outbox()
    for number in range(count):
        outbox.put(entry(number))
    return outbox


def test_a_message_is_sent_once_and_leaves_when_it_is_confirmed() -> None:
    outbox = filled(1)
    assert outbox.take_due(0) == [entry(0)]
    assert outbox.take_due(RETRY_NS - 1) == []
    outbox.confirm("m-0")
    assert len(outbox) == 0


def test_without_a_confirmation_it_is_sent_again_after_two_seconds() -> None:
    outbox = filled(1)
    outbox.take_due(0)
    assert outbox.take_due(2 * NS_PER_SECOND - 1) == []
    assert outbox.take_due(RETRY_NS) == [entry(0)]


def test_messages_in_flight_are_limited_and_keep_their_order() -> None:
    outbox = filled(IN_FLIGHT + 10)
    assert outbox.take_due(0) == [entry(number) for number in range(IN_FLIGHT)]
    assert outbox.take_due(1) == []
    outbox.confirm("m-5")
    assert outbox.take_due(1) == [entry(IN_FLIGHT)]


def test_after_a_lost_connection_everything_is_sent_again() -> None:
    outbox = filled(3)
    outbox.take_due(0)
    outbox.connection_lost()
    assert outbox.take_due(1) == [entry(0), entry(1), entry(2)]


def test_a_full_outbox_gives_up_the_oldest_message_and_counts_it() -> None:
    outbox = Outbox(capacity=3)
    for number in range(5):
        outbox.put(entry(number))
    assert outbox.take_due(0) == [entry(2), entry(3), entry(4)]
    assert outbox.given_up == 2


def test_a_snapshot_holds_what_was_not_confirmed() -> None:
    outbox = filled(3)
    outbox.take_due(0)
    outbox.confirm("m-1")
    restored = Outbox()
    restored.load(msgspec.json.decode(msgspec.json.encode(outbox.save()), type=SavedOutbox))
    assert restored.take_due(RETRY_NS - 1) == [], "they are in flight"
    assert restored.take_due(RETRY_NS) == [entry(0), entry(2)]


def test_a_message_that_was_given_up_in_flight_is_not_sent_again() -> None:
    outbox = Outbox(capacity=2)
    outbox.put(entry(0))
    outbox.take_due(0)
    outbox.put(entry(1))
    outbox.put(entry(2))
    assert outbox.take_due(RETRY_NS) == [entry(1), entry(2)]


class Server(RuleBasedStateMachine):
    """A server that stores some messages, loses others, and confirms late or never."""

    def __init__(self) -> None:
        super().__init__()
        self.outbox = Outbox(in_flight=4)
        self.now = 0
        self.put: list[str] = []
        self.stored: set[str] = set()
        self.unconfirmed: list[str] = []

    @rule()
    def put_message(self) -> None:
        self.outbox.put(entry(len(self.put)))
        self.put.append(f"m-{len(self.put)}")

    @rule(lost=st.booleans())
    def send(self, lost: bool) -> None:
        for each in self.outbox.take_due(self.now):
            if not lost:
                self.stored.add(each.message_id)
                self.unconfirmed.append(each.message_id)

    @precondition(lambda self: self.unconfirmed)
    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.unconfirmed)))
        self.unconfirmed.remove(name)
        self.outbox.confirm(name)

    @rule()
    def lose_the_connection(self) -> None:
        self.outbox.connection_lost()
        self.unconfirmed = []

    @rule(seconds=st.floats(0, 5))
    def wait(self, seconds: float) -> None:
        self.now += int(seconds * NS_PER_SECOND)

    @invariant()
    def every_message_is_stored_or_waits(self) -> None:
        waiting = {each.message_id for each in self.outbox.save().entries}
        assert set(self.put) <= self.stored | waiting

    def teardown(self) -> None:
        for _ in range(len(self.put) + 1):
            self.now += RETRY_NS
            self.send(lost=False)
            for name in self.unconfirmed:
                self.outbox.confirm(name)
            self.unconfirmed = []
        assert self.stored == set(self.put)
        assert len(self.outbox) == 0


TestServer = Server.TestCase
TestServer.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
