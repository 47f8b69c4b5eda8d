"""The NATS server of the mobile robots of a cell: of the cell file, or of the robots' files."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import Any

from understudy.config.document import parse
from understudy.config.typed import read
from understudy.errors import ConfigError, located_at
from understudy.registry import module_of
from understudy.robots.mobile.config.robot_file import Nats, RobotFile, read_robot_file
from understudy.wire.interface import Wire

Config = dict[str, Any]
"""The key `nats` of a cell file; it is read as the wire that it configures."""
IN_DIGEST = False
Find = Callable[[str], tuple[str, str]]
"""Path and text of a file by its name in the cell file."""


def parsed(found: Config) -> Config:
    """Checks the keys also where no robot, or none that is valid, asks for the server."""
    keys = {"durable": "any", **found} if found.get("servers") else found
    read(keys, module_of("wires", "nats").Config)
    return found


@lru_cache(maxsize=64)
def robot_file(path: str, text: str) -> RobotFile:
    """A robot_config.json; many robots of a cell have the same."""
    return read_robot_file(text, path)


def wire_of(files: Mapping[str, str], given: Mapping[str, Any] | None, find: Find) -> Wire:
    """The wire to NATS. ``files``: of the robots, by their names; ``given``: the key `nats` of the
    cell file, in its absence that of the robots' files counts."""
    found: tuple[str, Nats] | None = None
    place: dict[str, Any] = {}
    first_robots: dict[str, str] = {}
    for name, file in files.items():
        first_robots.setdefault(file, name)
    for file, name in first_robots.items():
        with located_at(f"robots.{name}"):
            path, text = find(file)
        nats = robot_file(path, text).nats
        if given is None and nats != Nats():
            if found is not None and found[1] != nats:
                raise _another(found[0], path, text)
            found = path, nats
            place = {"file": path, "line": parse(text, path).lines[("nats",)]}
    keys = dict(given or (wire_keys(*found) if found else {}))
    if keys.get("servers"):
        keys.setdefault("durable", consumer_of(files))
    try:
        wire: Wire = read(keys, module_of("wires", "nats").Config)
    except ConfigError as problem:
        raise problem.within("nats", **place) from None
    return wire


def sections_beside_first_shard(
    sections: Mapping[str, Any], endpoints: Mapping[str, str]
) -> dict[str, Any]:
    """The sections of a cell for another process than the first one, which has the server.
    ``endpoints``: of the first one, if it listens already."""
    keys = dict(sections.get("nats") or {})
    if keys.get("servers"):
        return dict(sections)
    host, port = keys.pop("host", "127.0.0.1"), keys.pop("port", 4222)
    address = endpoints.get("nats") or f"nats://{host}:{port}"
    if port == 0 and "nats" not in endpoints:
        raise ConfigError("shards need a server at a known port", key="nats.port", value=0)
    for key in ("store", "max_memory_mb", "max_file_mb", "sync"):
        keys.pop(key, None)
    keys["servers"], keys["siblings"] = [address], True
    return {**sections, "nats": keys}


def consumer_of(robots: Iterable[str]) -> str:
    """Name of the consumer of these robots: cells that share a server must not share it, since
    each message is given to one process of a consumer only."""
    digest = hashlib.sha256("\n".join(sorted(robots)).encode()).hexdigest()
    return f"understudy-{digest[:12]}"


def _another(other: str, path: str, text: str) -> ConfigError:
    return ConfigError(
        f"{other} names another NATS server or other settings of it",
        file=path,
        line=parse(text, path).lines[("nats",)],
        key="nats",
        allowed="the same in all files, or the key nats in the cell file",
    )


def wire_keys(path: str, nats: Nats) -> dict[str, Any]:
    """The section `nats` of a robot file in the keys of a cell file; its file names are seen from
    it."""
    folder = PurePath(path).parent
    tls = nats.tls and {
        key: str(folder / name)
        for key in ("ca_file", "cert_file", "key_file")
        if (name := getattr(nats.tls, key))
    }
    secrets = {"creds_file": nats.creds_file_path, "nkey_file": nats.nkey_seed_file_path}
    keys: dict[str, Any] = {key: str(folder / name) for key, name in secrets.items() if name}
    keys |= {"servers": list(nats.servers), "token": nats.token or ""}
    keys |= {"tls": tls} if tls else {}
    keys |= {"stream_in": nats.jet_stream.stream_in, "stream_out": nats.jet_stream.stream_out}
    return keys | {
        "connect_timeout_s": nats.timeouts.connect_seconds,
        "answer_timeout_s": nats.timeouts.request_seconds,
        "reconnect_wait_s": nats.timeouts.reconnect_wait_seconds,
    }
