"""One line to the real socket of a robot, and what comes back, as a client would see it."""

import asyncio
import json
import re
import uuid
from typing import Any

from understudy.config.files import ShippedClients
from understudy.errors import Refused
from understudy.ports.decoder import Decoder

ANSWER_SECONDS = 5.0
"""The longest time for the whole answer, and until its first byte."""
LISTEN_SECONDS = 1.0
"""So long after the first byte, where the end of an answer cannot be seen."""
MOST_BYTES = 16 * 1024
MOST_FRAMES = 8
LONGEST_LINE = 4096


def encoded(line: str, wire: ShippedClients, robot: str) -> bytes | Refused:
    """The bytes of a typed line, in the form of its wire."""
    match wire.form:
        case "bytes":
            try:
                return bytes.fromhex(line)
            except ValueError:
                return Refused("this wire has frames of bytes: type them in hexadecimal, as 01 00")
        case "nats":
            return _published(line, wire, robot)
    return line.encode() if line in wire.status else line.encode() + b"\n"


def _published(line: str, wire: ShippedClients, robot: str) -> bytes | Refused:
    """What a client of NATS sends: it subscribes to the answers and publishes the message."""
    subject, *rest = line.split(maxsplit=1) or [""]
    try:
        payload = json.loads("".join(rest))
    except (ValueError, RecursionError) as problem:
        return Refused(f"type a subject and its payload as JSON: {problem}")
    number = str(uuid.uuid4())
    envelope = {"messageId": number, "correlationId": number, "payload": payload}
    body = json.dumps(envelope).encode()
    own = [each.replace(wire.robot, robot) for each in wire.hear]
    subscriptions = "".join(f"SUB {each} {n}\r\n" for n, each in enumerate(own, start=1))
    head = f'CONNECT {{"verbose":false}}\r\n{subscriptions}PUB {subject} {len(body)}\r\n'
    return head.encode() + body + b"\r\n"


async def exchange(address: str, data: bytes, ends: str = "") -> bytes | Refused:
    """What the socket at this address answers. ``ends``: matches the end of an answer."""
    host, _, port = address.partition("//")[2].rpartition(":")
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except TimeoutError:
        return Refused(f"{address} cannot be reached: no connection within {ANSWER_SECONDS:g} s")
    except OSError as problem:
        return Refused(f"{address} cannot be reached: {problem.strerror or problem}")
    heard = b""
    try:
        writer.write(data)
        await writer.drain()
        clock = asyncio.get_running_loop().time
        until = clock() + ANSWER_SECONDS
        while len(heard) < MOST_BYTES:
            more = await asyncio.wait_for(reader.read(4096), until - clock())
            if not more:
                break
            if not heard and not ends:
                until = min(until, clock() + LISTEN_SECONDS)
            heard += more
            if ends and re.search(ends, heard.decode("latin-1")):
                break
    except TimeoutError:
        pass
    except OSError as problem:
        return Refused(f"{address}: {problem.strerror or problem}")
    finally:
        writer.close()
    return heard


def shown(data: bytes, form: str) -> list[str]:
    """Bytes as lines for a reader."""
    if form == "bytes":
        return [data[at : at + 48].hex(" ", 4) for at in range(0, min(len(data), 384), 48)]
    return [line for line in data.decode("utf-8", "backslashreplace").splitlines() if line.strip()]


def meaning(data: bytes, decoder: Decoder) -> list[dict[str, Any]]:
    """The fields of the first frames of an answer, without those that repeat the one before."""
    frames, _ = decoder.cut_answers(data)
    fields = [dict(decoder.read_answer(frame, "").fields) for frame in frames]
    new = [each for n, each in enumerate(fields) if each and (n == 0 or each != fields[n - 1])]
    return [
        {key: value for key, value in each.items() if not key.startswith("filling")}
        for each in new[:MOST_FRAMES]
    ]
