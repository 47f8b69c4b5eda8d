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


class FirstBytes:
    """The first bytes of one connection, until they show what the peer is. `known`: None once it is
    known to be no HTTP or TLS client."""

    def __init__(self, known: bytes | None = b"") -> None:
        self.known = known

    def read(self, data: bytes) -> tuple[bytes, bool]:
        """The bytes to pass on, and whether the peer is an HTTP or TLS client.

        Of such a client those before the byte that shows it are passed on, however they are cut.
        """
        if self.known is None:
            return data, False
        first = self.known + data[:LONGEST]
        found = FOREIGN.match(first)
        if found:
            return data[: found.end() - len(self.known) - 1], True
        self.known = first if len(first) < LONGEST else None
        return data, False
