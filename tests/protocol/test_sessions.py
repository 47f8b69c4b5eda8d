"""Line reader, outbox and ready peers."""

from hypothesis import given
from hypothesis import strategies as st

from understudy.protocol.sessions import LineReader, Outbox, ReadyPeers, SavedLine, TextLine

LIMIT = 4
STREAMS = st.lists(st.sampled_from([b"\n", b"\r", b"a", b"bc", b"\xff", b"longer"])).map(b"".join)


def in_one_go(stream: bytes) -> list[TextLine]:
    """The lines of a text, without the reader."""
    lines = [line.removesuffix(b"\r") for line in stream.split(b"\n")[:-1]]
    return [TextLine(line[:LIMIT], len(line) > LIMIT) for line in lines]


@given(st.lists(STREAMS))
def test_lines_do_not_depend_on_packet_boundaries(packets: list[bytes]) -> None:
    reader = LineReader(LIMIT)
    lines = [line for packet in packets for line in reader.feed(packet)]
    assert lines == in_one_go(b"".join(packets))


@given(st.lists(STREAMS))
def test_a_partial_line_is_saved_and_continued(packets: list[bytes]) -> None:
    lines, saved = [], SavedLine()
    for packet in packets:
        reader = LineReader(LIMIT, saved)
        lines += reader.feed(packet)
        saved = reader.save()
        assert len(saved.part) <= LIMIT + 1
    assert lines == in_one_go(b"".join(packets))


def test_a_line_over_the_limit_is_cut_off() -> None:
    reader = LineReader(LIMIT)
    assert reader.feed(b"abcd\nabcd\r\nabcde\nabcd\r\r\nab\n") == [
        TextLine(b"abcd", False),
        TextLine(b"abcd", False),
        TextLine(b"abcd", True),
        TextLine(b"abcd", True),
        TextLine(b"ab", False),
    ]


def test_a_message_waits_until_there_is_room_for_all_of_it() -> None:
    ready_peers = ReadyPeers()
    outbox = Outbox(lambda: ready_peers.add("1"))
    outbox.send(b"four")
    outbox.send(b"x")
    assert ready_peers.drain() == ["1"]
    assert ready_peers.drain() == []
    assert outbox.take(3) == b""
    assert (outbox.take(4), outbox.size) == (b"four", 1)
    assert (outbox.take(4), outbox.take(4), outbox.size) == (b"x", b"", 0)


def test_untaken_messages_are_saved_and_ready_again() -> None:
    outbox = Outbox(lambda: None)
    outbox.send(b"one")
    outbox.send(b"two")
    outbox.take(3)
    ready_peers = ReadyPeers()
    again = Outbox(lambda: ready_peers.add("1"), outbox.save())
    assert ready_peers.drain() == ["1"]
    assert (again.size, again.take(9)) == (3, b"two")


def test_ready_peers_are_listed_in_the_order_of_their_messages() -> None:
    ready_peers = ReadyPeers()
    for peer in ("2", "1", "2"):
        ready_peers.add(peer)
    assert ready_peers.drain() == ["2", "1"]
