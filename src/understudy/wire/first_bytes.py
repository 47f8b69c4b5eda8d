"""HTTP and TLS clients, recognised by the first bytes of their connection.

A web page can make the browser of its visitor send an HTTP request to any port of this machine,
with a body of the page's choice. Lines of that body must never be read as orders to a robot.
"""

import re

LONGEST = 9
"""Bytes that are kept of an undecided connection; of a longer first word the end is as good."""
WORD = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]"
"""A character of a method. A page whose name is made to lead to this machine (DNS rebinding) may
choose any method; no robot has a line with a slash after its first word."""
FOREIGN = re.compile(
    WORD + rb"+ /"  # a request to a server names a path; GET_POS is no method
    rb"|(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|TRACE) \*|CONNECT |PRI \* "
    rb"|\x16\x03[\x00-\x04]..\x01",  # a TLS record with a ClientHello
    re.DOTALL,
)
TLS_RECORD = b"\x16"
UNDECIDED = re.compile(WORD + rb"* ?|PRI \*|\x16(?:\x03(?:[\x00-\x04].{0,2})?)?", re.DOTALL)


def read_first(known: bytes | None, data: bytes) -> tuple[bytes | None, bytes, bool]:
    """Reads bytes of one connection: what is known of it then, the bytes to pass on, and whether
    the peer is an HTTP or TLS client.

    ``known`` are the first bytes so far; None once the peer is known to be no such client.

    Of an HTTP client the bytes before the one that shows it are passed on, however they are cut.
    Bytes that may begin a TLS record are kept until it is decided: 0x03 resets a grblHAL.
    """
    if known is None:
        return None, data, False
    first = known + data
    kept = known if known.startswith(TLS_RECORD) else b""
    found = FOREIGN.match(first)
    if found:
        before = b"" if first.startswith(TLS_RECORD) else first[: found.end() - 1]
        return known, before[len(known) :], True
    undecided = UNDECIDED.fullmatch(first) is not None
    passed = b"" if undecided and first.startswith(TLS_RECORD) else kept + data
    return first[-LONGEST:] if undecided else None, passed, False
