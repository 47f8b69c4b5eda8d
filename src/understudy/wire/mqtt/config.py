"""The keys of a cell file for an MQTT broker."""

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from understudy.wire.interface import PeerEvents, Server

if TYPE_CHECKING:
    from understudy.wire.interface import Wire

Text = Annotated[str, Meta(max_length=1024)]
Seconds = Annotated[float, Meta(gt=0, le=3600)]


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The broker, and how to log in. `client_id`: without it the name of the endpoint, after
    `understudy-`. `ca_file`: checks the broker's certificate, and switches TLS on."""

    host: Text = "127.0.0.1"
    port: Annotated[int, Meta(ge=1, le=65535)] = 1883
    client_id: Text | None = None
    username: Text | None = None
    password: Text | None = None
    ca_file: Text | None = None
    cert_file: Text | None = None
    key_file: Text | None = None
    keepalive_s: Annotated[int, Meta(ge=1, le=3600)] = 15
    connect_timeout_s: Seconds = 5.0
    reconnect_wait_s: Seconds = 2.0

    def __post_init__(self) -> None:
        for key, needed in (("cert_file", "ca_file"), ("key_file", "cert_file"),
                            ("password", "username")):  # fmt: skip
            if getattr(self, key) is not None and getattr(self, needed) is None:
                raise ValueError(f"{key} needs {needed}")

    def placed(self, port: int | None, *, ephemeral: bool) -> "Wire":
        """A broker of others: it has its port, whatever is free here."""
        return self if port is None else replace(self, port=port)

    def listens_on(self) -> tuple[str, int] | None:
        return None

    def server(self, endpoint: str, events: PeerEvents) -> Server:
        from understudy.wire.mqtt.endpoint import MqttEndpoint

        return MqttEndpoint(endpoint, self, events)
