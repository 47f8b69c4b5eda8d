"""One connection to a NATS server: nats-py without its reconnecting, and with firm ends.

nats-py serves one connection here. It ends a lost one with a wait for a peer that may take no more
bytes, and a subject that is not UTF-8 ends its reading without a word: both are replaced. `lost` is
the reason as soon as the connection is of no use.
"""

import asyncio
import contextlib
import re
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nats.aio.client import PING_PROTO, Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from understudy.errors import ConfigError
from understudy.wire.nats.config import Config, Tls

NEVER = 10**9
"""Seconds between the pings of nats-py: `answered` pings instead."""
LARGEST_BUFFER = 8 << 20
SLICES = 4
CLOSE_SECONDS = 1.0
MOST_SUBJECTS = 200_000
"""Subjects that are remembered: more than the steady messages of a process have."""
__all__ = ["NatsClient", "NatsError", "connect", "shown"]
CREDENTIALS = (b"BEGIN NATS USER JWT", b"BEGIN USER NKEY SEED")
SEED = re.compile(rb"SU[A-Z2-7]{56}")
SUBJECT = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)
"""Subjects of steady messages; others are sent with `publish`."""
PERMISSIONS = "permissions violation"


class NatsClient(Client):
    """A client of nats-py for one connection."""

    def __init__(self, *, needs_tls: bool) -> None:
        super().__init__()
        self._needs_tls = needs_tls
        self._starts: dict[str, bytes] = {}
        """Subject → the first bytes of a message to it."""
        self.problem = ""
        """The last error that was not the end of the connection."""
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def give_up(self, reason: str) -> None:
        """The connection is of no use any more."""
        if not self.lost.done():
            self.lost.set_result(reason)

    async def answered(self, within: float) -> None:
        """Returns when the server has read everything that was sent; `lost` if it does not."""
        pong: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._pongs.append(pong)
        await self._send_command(PING_PROTO)
        await self._flush_pending()
        if not await is_done({pong, self.lost}, within):
            self.give_up(f"no answer within {within:g} s")
        if self.lost.done():
            raise ConnectionError(self.lost.result())

    async def leave(self, subscription: Subscription, within: float) -> None:
        """Ends a subscription; returns when all its messages have been given to their listener."""
        await self._send_unsubscribe(subscription._id)
        await self.answered(within)
        await asyncio.wait_for(subscription._pending_queue.join(), within)

    async def end(self) -> None:
        """Closes the connection without waiting for the peer to read."""
        self._pending.clear()
        self._pending_data_size = 0
        writer: Any = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self.close(), CLOSE_SECONDS)
        self.give_up("closed")

    async def note(self, problem: Exception) -> None:
        """`error_cb` of nats-py."""
        self.problem = str(problem) or type(problem).__name__

    def add_frame(self, frames: list[bytes], subject: str, payload: bytes) -> bool:
        """Adds the bytes of a message without reply address and headers, for `write`; false: it can
        only be sent with `publish`, which says what is wrong with it. A subject is checked and
        encoded once."""
        start = self._starts.get(subject)
        if start is None:
            if not SUBJECT.fullmatch(subject) or len(self._starts) >= MOST_SUBJECTS:
                return False
            start = self._starts[subject] = f"PUB {subject} ".encode()
        if len(payload) > self._max_payload:
            return False
        frames += (start, b"%d\r\n" % len(payload), payload, b"\r\n")
        return True

    async def write(self, data: bytes) -> None:
        """Sends frames; they leave with the next `answered`."""
        await self._send_command(data)

    # ── replaced parts of nats-py ──

    async def _process_op_err(self, e: Exception) -> None:
        self.give_up(str(e) or type(e).__name__)

    async def _process_err(self, err_msg: str) -> None:
        self.problem = err_msg.strip("' ")
        if PERMISSIONS not in self.problem.lower():
            self.give_up(self.problem)

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """The secret is sent after this: never to a server without TLS where TLS is wanted."""
        if initial_connection and self._needs_tls and not info.get("tls_required"):
            raise NatsError("the server offers no TLS")
        await super()._process_info(info, initial_connection)

    def _build_message(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None
    ) -> Msg:
        return Msg(
            _client=self, subject=subject.decode("utf-8", "replace"),
            reply=reply.decode("utf-8", "replace"), data=data, headers=headers, _sid=sid,
        )  # fmt: skip


async def is_done(either: set["asyncio.Future[Any]"], within: float) -> bool:
    """Waits until one of them is done; false if none is in time.

    The time is waited for in slices: if this process was busy for long, one slice is over before
    anything that has come meanwhile is read, but not all of them.
    """
    for _ in range(SLICES):
        done, _ = await asyncio.wait(either, timeout=within / SLICES, return_when="FIRST_COMPLETED")
        if done:
            return True
    return False


async def connect(config: Config, address: str) -> NatsClient:
    """A client that is connected to this address; `ConnectionError` with the reason if it cannot.

    ConfigError: a file of the credentials cannot be used.
    """
    scheme_tls = address.startswith("tls://")
    client = NatsClient(needs_tls=config.tls is not None or scheme_tls)
    secrets = _secrets(config)
    try:
        await asyncio.wait_for(
            client.connect(
                servers=[address], error_cb=client.note, name=f"understudy {config.durable}",
                allow_reconnect=False, max_reconnect_attempts=1, reconnect_time_wait=0,
                connect_timeout=config.connect_timeout_s,  # type: ignore[arg-type]
                ping_interval=NEVER, pending_size=LARGEST_BUFFER,
                flush_timeout=config.answer_timeout_s, **secrets,
            ),
            2 * config.connect_timeout_s,
        )  # fmt: skip
    except (NatsError, OSError, TimeoutError, ValueError) as problem:
        reason = client.problem or str(problem) or type(problem).__name__
        await client.end()
        raise ConnectionError(reason.removeprefix("nats: ")) from None
    except BaseException:
        await client.end()
        raise
    assert client._reading_task is not None
    client._reading_task.add_done_callback(lambda task: client.give_up(_end_of(task)))
    return client


def shown(address: str) -> str:
    """An address without the user and password that it may have."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _end_of(task: asyncio.Task[None]) -> str:
    if task.cancelled() or task.exception() is None:
        return "the connection was closed"
    return str(task.exception())


def _secrets(config: Config) -> dict[str, Any]:
    """The keyword arguments of nats-py that carry credentials and TLS."""
    found: dict[str, Any] = {}
    if config.creds_file:
        text = _content(config.creds_file, "creds_file")
        if any(part not in text for part in CREDENTIALS):
            raise _unusable(config.creds_file, "creds_file", "a file with a user's JWT and seed")
        found["user_credentials"] = config.creds_file
    if config.nkey_file:
        if not SEED.fullmatch(_content(config.nkey_file, "nkey_file").strip()):
            raise _unusable(config.nkey_file, "nkey_file", "a file with a user's seed, SU…")
        found["nkeys_seed"] = config.nkey_file
    if config.token:
        found["token"] = config.token
    if config.tls is not None:
        found["tls"] = _context(config.tls)
        if config.tls.hostname:
            found["tls_hostname"] = config.tls.hostname
    return found


def _content(file: str, key: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise ConfigError(
            f"the file cannot be read: {reason}", key=f"nats.{key}", value=file
        ) from None


def _unusable(file: str, key: str, allowed: str) -> ConfigError:
    return ConfigError(
        "the file has no credentials", key=f"nats.{key}", value=file, allowed=allowed
    )


def _context(tls: Tls) -> ssl.SSLContext:
    for key in ("ca_file", "cert_file", "key_file"):
        if file := getattr(tls, key):
            _content(file, f"tls.{key}")
    try:
        context = ssl.create_default_context(cafile=tls.ca_file or None)
        if tls.cert_file:
            context.load_cert_chain(tls.cert_file, tls.key_file or None)
    except (OSError, ValueError) as problem:
        raise ConfigError(f"the certificates cannot be used: {problem}", key="nats.tls") from None
    return context
