"""A NATS server that is not the cell's own: started by the test, with any settings."""

import asyncio
import base64
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nkeys

from understudy.wire.nats.server import needed_binary


class GivenServer:
    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._folder = folder
        self.settings = {
            "host": "127.0.0.1",
            "port": -1,
            "ports_file_dir": str(folder),
            "jetstream": {"store_dir": str(folder / "store")},
        } | settings
        self.port = 0
        self._process: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Starts it, on the same port as before."""
        file = self._folder / "given.conf"
        file.write_text(json.dumps(self.settings | ({"port": self.port} if self.port else {})))
        with (self._folder / "given.log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                needed_binary(), "-c", str(file), stderr=log
            )
        ports = self._folder / f"nats-server_{self._process.pid}.ports"
        while not ports.exists() or not (text := ports.read_text()):
            assert self._process.returncode is None, (self._folder / "given.log").read_text()
            await asyncio.sleep(0.005)
        self.port = int(json.loads(text)["nats"][0].rsplit(":", 1)[1])

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@contextlib.asynccontextmanager
async def given_server(folder: Path, **settings: Any) -> AsyncIterator[GivenServer]:
    server = GivenServer(folder, settings)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def make_user(folder: Path) -> tuple[str, Path]:
    """A public nkey of a user, and the file with its seed."""
    pair, seed = _pair(nkeys.PREFIX_BYTE_USER)
    file = folder / "user.nk"
    file.write_bytes(seed)
    return pair.public_key.decode(), file


# ── users with a JWT ────────────────────────────────────────────────────────────────────────────


def _pair(prefix: int) -> tuple[Any, bytes]:
    seed = nkeys.encode_seed(os.urandom(32), prefix)
    return nkeys.from_seed(bytearray(seed)), bytes(seed)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _signed(issuer: Any, subject: Any, name: str, claims: dict[str, Any]) -> str:
    body = {
        "jti": name,
        "iat": 1,
        "iss": issuer.public_key.decode(),
        "sub": subject.public_key.decode(),
        "name": name,
        "nats": claims | {"version": 2},
    }
    header = {"typ": "JWT", "alg": "ed25519-nkey"}
    text = ".".join(_base64(json.dumps(part).encode()) for part in (header, body))
    return f"{text}.{_base64(issuer.sign(text.encode()))}"


def jwt_users(folder: Path) -> tuple[dict[str, Any], Path]:
    """Settings of a server whose users need a JWT, and the credentials file of one of them."""
    operator, _ = _pair(nkeys.PREFIX_BYTE_OPERATOR)
    system, _ = _pair(nkeys.PREFIX_BYTE_ACCOUNT)
    account, _ = _pair(nkeys.PREFIX_BYTE_ACCOUNT)
    user, seed = _pair(nkeys.PREFIX_BYTE_USER)
    unlimited = dict.fromkeys(
        ("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage",
         "disk_storage", "streams", "consumer"), -1,
    ) | {"wildcards": True}  # fmt: skip
    none = unlimited | dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), 0)
    accounts = {
        each.public_key.decode(): _signed(
            operator, each, name, {"type": "account", "limits": limits}
        )
        for each, name, limits in ((system, "system", none), (account, "robots", unlimited))
    }
    settings = {
        "operator": _signed(operator, operator, "operator", {"type": "operator"}),
        "system_account": system.public_key.decode(),
        "resolver": "MEMORY",
        "resolver_preload": accounts,
    }
    jwt = _signed(account, user, "cell", {"type": "user", "subs": -1, "data": -1, "payload": -1})
    file = folder / "user.creds"
    file.write_text(
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed.decode()}\n------END USER NKEY SEED------\n"
    )
    return settings, file
