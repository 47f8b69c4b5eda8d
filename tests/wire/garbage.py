"""Structured garbage for every endpoint: mutated sessions, other protocols, halves of messages."""

import struct
from random import Random

from understudy.wire.zmtp import command, greeting, message

READY = b"\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\0"
ZMTP = greeting() + command(b"READY", READY)
PING = b'{"type": "PING", "id": 1, "payload": {}}'
SESSIONS = {
    "text": b"GET_POS\nMOVE_ABS 100,200,150,0,0,90\nGET_STATUS\nHOME\nSTOP\nRESET\nSET_SPEED 50\n",
    "grblhal": b"?$I\n$$\nG91 G1 X1 F100\n$X\nG90\n$#\n!~\x18?M3 S100\nG4 P0.1\n$J=G91X1F100\n",
    "kuka": b"<Sensor><Command>G1 X10 Y20 F100</Command><Id>1</Id></Sensor>\nG1 X1 F10\nM30\n",
    "control": b'{"id": 1, "do": "status"}\n{"do": "now", "secret": "no"}\n[1]\n{"do": 3}\n',
    "state": struct.pack(">I", 12) + b"\x81\xa4want\xa5frame" + struct.pack(">I", 1 << 31),
    "link": ZMTP + message([b"", PING]) * 5 + command(b"PING", b"\0\0context"),
    "http": b"GET /api/now HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: a=b\r\n\r\n"
    b"POST /api/advance HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b'Content-Length: 15\r\n\r\n{"seconds": 0 }',
    "websocket": b"GET /ws/state HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    b"\x81\x85\0\0\0\0hello\x89\x80\0\0\0\0\x01\x81\0\0\0\0\xff",
    "tls": b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(range(256)) * 2,
}
"""Sessions as real clients of an endpoint have them; every endpoint gets those of all others."""


def piece(chance: Random) -> bytes:
    """Some kilobytes of garbage."""
    session = bytearray(chance.choice(list(SESSIONS.values())))
    kind = chance.randrange(6)
    if kind == 0:
        return chance.randbytes(chance.randrange(1, 20_000))
    if kind == 1:  # a line, a header or a frame that does not end
        return bytes(session[: chance.randrange(len(session))]) + b"x" * chance.randrange(60_000)
    if kind == 2:  # many whole sessions at once
        return bytes(session) * chance.randrange(1, 60)
    for _ in range(chance.randrange(1, 10)):
        at = chance.randrange(len(session))
        what = chance.randrange(4)
        if what == 0:
            session[at] = chance.randrange(256)
        elif what == 1:
            del session[at : at + chance.randrange(20)]
        elif what == 2:
            session[at:at] = chance.randbytes(chance.randrange(20))
        else:
            session[at:at] = session[: chance.randrange(200)]
        session = session or bytearray(b"\n")
    return bytes(session) * chance.randrange(1, 20)
