"""HTTP and TLS clients, recognised by the first bytes of their connection.

A web page can make the browser of its visitor send an HTTP request to any port of this machine,
with a body of the page's choice. Lines of that body must never be read as orders to a robot.
"""

import re

LONGEST = 9
"""Bytes that decide, at most: those of `OPTIONS /`."""
VERBS = b"GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|TRACE"
FOREIGN = re.compile(
    rb"(?:" + VERBS + rb") [/*]"  # a request to a server names a path; GET_POS is no verb
    rb"|CONNECT |PRI \* "
    rb"|\x16\x03[\x00-\x04]..\x01",  # a TLS record with a ClientHello
    re.DOTALL,
)


def foreign_after(data: bytes) -> int | None:
    """Number of bytes after which a connection is known to be of another kind; None if it is not
    known to be."""
    found = FOREIGN.match(data)
    return found.end() if found else None
