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
UNDECIDED = re.compile(WORD + rb"* ?|PRI \*|\x16(?:\x03(?:[\x00-\x04].{0,2})?)?", re.DOTALL)


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
        first = self.known + data
        found = FOREIGN.match(first)
        if found:
            return data[: found.end() - len(self.known) - 1], True
        self.known = first[-LONGEST:] if UNDECIDED.fullmatch(first) else None
        return data, False
