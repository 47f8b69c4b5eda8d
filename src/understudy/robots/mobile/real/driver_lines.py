"""Requests and answers as lines of text, for devices at a serial port.

    > 17 R I 1 300 3*0C\\n         read 3 input registers of unit 1 from address 300 on
    < 17 OK 1 1500 65535*07\\n
    > 18 W H 1 0 1 0 5000*33\\n    write holding registers from address 0 on
    < 18 OK*2D\\n
    < 18 ERR 2*7E\\n              the device refuses the request

I: input registers, H: holding registers, D: discrete inputs, C: coils. Behind the star stands the
exclusive or of all bytes before it, in two hexadecimal digits.
"""

from functools import reduce
from operator import xor

from understudy.robots.mobile.real.driver_registers import Answer, BadAnswerError, Request

TABLES = {(False, True): "D", (False, False): "I", (True, True): "C", (True, False): "H"}
"""The letter of a table by (writes, bits)."""
LARGEST = 0xFFFF
DIGITS = len(str(LARGEST))
LONGEST_QUOTE = 60


class LineCodec:
    """`Codec`."""

    def request(self, request: Request) -> bytes:
        block, writes = request.block, request.values is not None
        rest = request.values if request.values is not None else [block.count]
        words = (
            request.number, "W" if writes else "R", TABLES[writes, block.bits],
            block.unit, block.address, *rest,
        )  # fmt: skip
        return line_of(" ".join(map(str, words)))

    def answer(self, request: Request, received: bytes) -> tuple[int, Answer | None]:
        line, end, _ = received.partition(b"\n")
        if not end:
            return 0, None
        used, text = len(line) + 1, text_of(line)
        number, _, rest = text.partition(" ")
        if number != str(request.number):
            return used, None  # the answer to a request before this one
        kind, _, values = rest.partition(" ")
        if kind == "ERR":
            return used, Answer((), f"error {values[:LONGEST_QUOTE]}")
        words = values.split()
        if kind != "OK" or not all(word.isdecimal() for word in words):
            raise BadAnswerError(f"its answer cannot be read: {text[:LONGEST_QUOTE]!r}")
        if any(len(word) > DIGITS or int(word) > LARGEST for word in words):
            raise BadAnswerError("a register has 16 bits")
        return used, Answer([int(word) for word in words])


def line_of(text: str) -> bytes:
    """A text with its check sum, as a line."""
    data = text.encode("ascii")
    return b"%s*%02X\n" % (data, reduce(xor, data, 0))


def text_of(line: bytes) -> str:
    """The text of a line; raises a `BadAnswerError` if the check sum is wrong."""
    data, star, given = line.rstrip(b"\r").rpartition(b"*")
    if not star or given.upper() != b"%02X" % reduce(xor, data, 0) or not data.isascii():
        shown = line[:LONGEST_QUOTE].decode("latin-1")
        raise BadAnswerError(f"a line with a wrong check sum: {shown!r}")
    return data.decode("ascii")
