"""`record` in front of a NATS server: messages, not bytes; its clients are no HTTP clients."""

import asyncio

import pytest

from understudy.ports import WireMessage
from understudy.wire.chat import parse
from understudy.wire.dial import Destination
from understudy.wire.record import NatsReader, Recorder, parse_address
from understudy.wire.tcp import stop_accepting

SAID = (
    b'CONNECT {"verbose":false}\r\nPING\r\nSUB robot.*.state 1\r\n'
    b'PUB robot.robot-1.command.request _INBOX.1 9\r\n{"a":\r\n1}\r\n'
    b"HPUB x 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"
)
ANSWERED = b"INFO {}\r\nPONG\r\nMSG robot.robot-1.state 1 2\r\n{}\r\nMSG _INBOX.1 2 back 0\r\n\r\n"
PATIENCE_S = 60.0


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_messages_are_found_however_the_bytes_are_cut(size: int) -> None:
    read, answers = NatsReader(), NatsReader()
    said = [m for at in range(0, len(SAID), size) for m in read(SAID[at : at + size])]
    assert said == [
        WireMessage("robot.robot-1.command.request", b'{"a":\r\n1}', "_INBOX.1"),
        WireMessage("x", b"hi"),
    ]
    got = [m for at in range(0, len(ANSWERED), size) for m in answers(ANSWERED[at : at + size])]
    assert got == [WireMessage("robot.robot-1.state", b"{}"), WireMessage("_INBOX.1", b"", "back")]


async def recorded() -> str:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(SAID))
        writer.write(ANSWERED)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    to = Destination("127.0.0.1", port)
    recorder = Recorder(parse_address("127.0.0.1:0"), to, face="fleet", wire="nats")
    lines: list[str] = []
    listens = asyncio.Event()
    task = asyncio.ensure_future(recorder.run(lines.append, lambda text: listens.set()))
    await asyncio.wait_for(listens.wait(), PATIENCE_S)
    host, _, at = recorder.place.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(at))
    writer.write(SAID)
    assert await asyncio.wait_for(reader.read(), PATIENCE_S) == ANSWERED
    writer.close()
    recorder.finished.set()
    await task
    await stop_accepting(server)
    return "".join(lines)


def test_a_nats_client_is_recorded() -> None:
    events = parse(asyncio.run(recorded())).events
    messages = [(each.kind, each.address) for each in events if each.address is not None]
    assert messages == [
        (">", ("robot.robot-1.command.request", "_INBOX.1")),
        (">", ("x", "")),
        ("<", ("robot.robot-1.state", "")),
        ("<", ("_INBOX.1", "back")),
    ]
