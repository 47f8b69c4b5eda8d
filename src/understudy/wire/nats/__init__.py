"""A NATS server with JetStream: an own one that runs with the cell, or a given one.

All peers behind the server are one session of the message face, whose peer name is `nats`. The
session is opened when the connection is made and closed when it is lost.

- Robot to backend: a message without `reply_to` is published and forgotten. A message with one is
  stored by JetStream under that id; when the server has confirmed it, the session receives a
  message to the address `CONFIRMED`. If no confirmation comes, the session hears nothing, and sends
  the message again when it likes: the server drops what it has already stored.
- Backend to robot: one durable consumer gives the messages to the session, as many as its credit
  allows. `reply_to` is the address of the acknowledgement; the session sends it when it has handled
  the message.
"""

import sys
from importlib import import_module
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from understudy.ports.access import check_reachable
from understudy.ports.faults import Fault, Faults
from understudy.wire.interface import PeerEvents, Port, Server, Wire

SELECTED_BY: dict[str, Any] = {}

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Address = Annotated[str, Meta(pattern=r"^(nats|tls)://[^/\s]+$", max_length=512)]
Seconds = Annotated[float, Meta(gt=0, le=3600)]

DUPLICATE_WINDOW_S = 600
"""The server drops a message whose id it has stored within this time."""
DEFAULT_MAX_AGE_S = 86_400
DEFAULT_MAX_MB = 256
KEPT_MB = 64
MOST_REPLICAS = 5
"""The largest number that JetStream knows."""
FAULTS: Faults = {
    "store_synced": Fault("brought", "the own NATS server has its whole store on the disk"),
    "power_cut": Fault(
        "brought",
        "the own NATS server loses what was stored since the last sync (none with sync: always)",
    ),
    "stream_lost": Fault("brought", "the stream of what robots say vanishes"),
    "stream_purged": Fault("brought", "the stream of what robots say is emptied"),
    "sequence_gap": Fault("brought", "a message vanishes from the stream of what robots say"),
}
"""Of the cell's own server; they are injected while the cell runs live."""
LIVE_REACTIONS = "understudy.wire.nats.reactions"
"""The module with the expected reactions."""
ONE_SECRET = ("creds_file", "nkey_file", "token")


class Tls(Struct, frozen=True, forbid_unknown_fields=True):
    """TLS to a given server: without `ca_file` the system's certificates are trusted. `cert_file`
    and `key_file`: the client's own. `hostname`: the name in the server's certificate."""

    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    hostname: str = ""


def _check_port(address: str) -> None:
    try:
        port = urlsplit(address).port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError(f"servers: {address}: the port is a number from 1 to 65535")


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The NATS server of a cell.

    Without `servers` the cell has a server of its own at `host` and `port` (0: any free one), which
    ends with the cell. Its files are in the folder `store`, which stays; without one they are in a
    temporary folder, which is removed. `max_memory_mb` and `max_file_mb` bound what JetStream
    stores. `sync`: `always` writes every message to the disk before it is confirmed, `interval`
    every two minutes; a killed server loses nothing either way, a power cut may.

    `servers`: addresses of a given server, `nats://host:port` or `tls://host:port`; with
    `creds_file` (JWT and nkey), `nkey_file` (a seed) or `token`, and `tls`. The own server wants
    `token` too if it is set; it must be set if other machines can reach `host`.

    `durable`: name of the cell's consumer; cells that share a server need different ones. `deliver`
    says where a consumer that is new to the server begins: at messages that are sent from now on,
    or at all that are stored. Once it exists, it goes on where it ended.

    `siblings`: other processes carry out orders for other robots of the same fleet; without it they
    are reported.

    `stream_kept`: records of the cell for its next start, for each `durable` its own.

    `max_age_s` and `max_mb`: bounds of each stream. `replicas`: servers of a cluster that store it.
    A stream that exists is never changed: it must have these bounds if they are given here, and at
    least as many replicas.
    """

    host: str = "127.0.0.1"
    port: Port = 4222
    store: str = ""
    max_memory_mb: Annotated[int, Meta(ge=1, le=1 << 20)] = 64
    max_file_mb: Annotated[int, Meta(ge=16, le=1 << 20)] = 1024
    sync: Literal["interval", "always"] = "interval"
    servers: Annotated[tuple[Address, ...], Meta(max_length=16)] = ()
    creds_file: str = ""
    nkey_file: str = ""
    token: Annotated[str, Meta(max_length=512)] = ""
    tls: Tls | None = None
    durable: Name = "understudy"
    deliver: Literal["new", "all"] = "new"
    siblings: bool = False
    stream_in: Name = "ROBOT_IN"
    stream_out: Name = "ROBOT_OUT"
    stream_kept: Name = "ROBOT_KEPT"
    max_age_s: Annotated[int, Meta(ge=DUPLICATE_WINDOW_S, le=10**9)] | None = None
    max_mb: Annotated[int, Meta(ge=1, le=1 << 20)] | None = None
    replicas: Annotated[int, Meta(ge=1, le=MOST_REPLICAS)] = 1
    ack_wait_s: Seconds = 10.0
    max_ack_pending: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    connect_timeout_s: Seconds = 2.0
    reconnect_wait_s: Seconds = 1.0
    answer_timeout_s: Seconds = 5.0
    ping_interval_s: Seconds = 5.0

    def __post_init__(self) -> None:
        for address in self.servers:
            _check_port(address)
        if len([name for name in ONE_SECRET if getattr(self, name)]) > 1:
            raise ValueError(f"only one of {', '.join(ONE_SECRET)} can be given")
        own = [name for name in ("creds_file", "nkey_file", "tls") if getattr(self, name)]
        if own and not self.servers:
            raise ValueError(f"{own[0]} is for given servers; the cell's own server takes a token")
        if self.store and self.servers:
            raise ValueError("store is for the cell's own server, not for given servers")
        if self.replicas > 1 and not self.servers:
            raise ValueError("replicas are for given servers; the cell's own server is alone")
        if not self.servers and 2 * self.stream_mb + self.kept_mb > self.max_file_mb:
            raise ValueError(
                f"two streams of {self.stream_mb} MB (max_mb) do not fit into max_file_mb: "
                f"{self.max_file_mb}, of which {self.kept_mb} MB are for {self.stream_kept}"
            )
        streams = {"in": self.stream_in, "out": self.stream_out, "kept": self.stream_kept}
        for one, other in (("in", "out"), ("in", "kept"), ("out", "kept")):
            if streams[one] == streams[other]:
                raise ValueError(
                    f"stream_{one} and stream_{other} are both {streams[one]}; name two streams"
                )

    @property
    def stream_mb(self) -> int:
        """The bound of a stream that is made."""
        if self.max_mb is not None:
            return self.max_mb
        room = self.max_file_mb - self.kept_mb
        return DEFAULT_MAX_MB if self.servers else min(DEFAULT_MAX_MB, room // 2)

    @property
    def kept_mb(self) -> int:
        """The bound of the stream of the records."""
        return KEPT_MB if self.servers else min(KEPT_MB, self.max_file_mb // 8)

    @property
    def durability(self) -> str:
        """Which confirmed messages a power cut of the server's machine can take."""
        if self.servers:
            return (
                f"of the given server, {self.replicas} replicas: its sync_interval says what a "
                "power cut takes (default: the last 2 min; always: nothing)"
            )
        if self.sync == "always":
            return "sync: always; a power cut takes no confirmed message"
        return (
            "sync: interval; a power cut takes the confirmed messages of the last 2 min, "
            "nats: {sync: always} keeps them"
        )

    def placed(self, port: int | None, *, ephemeral: bool) -> Wire:
        """An ephemeral cell has a store of its own: no other cell can use it then."""
        free = 0 if ephemeral else self.port
        store = "" if ephemeral else self.store
        return msgspec.structs.replace(self, port=free if port is None else port, store=store)

    def without_files(self) -> Wire:
        return msgspec.structs.replace(self, store="")

    def listens_on(self) -> tuple[str, int] | None:
        return None if self.servers else (self.host, self.port)

    def server(self, endpoint: str, events: PeerEvents) -> Server:
        from understudy.wire.nats.endpoint import NatsEndpoint

        if not self.servers:
            check_reachable(endpoint, self.host, self.token, set_by="nats: {token: …}")
        return NatsEndpoint(endpoint, self, events)


# ── the library ─────────────────────────────────────────────────────────────────────────────────

NEEDED_BY_WEB_SOCKETS = ("aiohttp", "multidict")


class LateModule:
    """A module that is imported when one of its names is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def load_library() -> None:
    """Imports nats-py without aiohttp, which it needs for web sockets only: 0.15 s at each start.

    A cell connects by TCP. A web socket that someone else opens in this process loads aiohttp then.
    """
    if {"aiohttp", "nats.aio.transport"} & set(sys.modules):
        return
    sys.modules["aiohttp"] = None  # type: ignore[assignment]  # an import of it fails
    try:
        transport = import_module("nats.aio.transport")
    finally:
        del sys.modules["aiohttp"]
    for name in NEEDED_BY_WEB_SOCKETS:
        setattr(transport, name, LateModule(name))
