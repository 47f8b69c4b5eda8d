"""The robot_config.json files of the mobile robots of a cell."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from understudy.config.mobile.profile import BarcodeMarker, InitialState, ProfilePose, SimulationProfile
from understudy.config.mobile.robot_file import Nats, RobotFile, read_robot_file
from understudy.config.typed import read
from understudy.errors import ConfigError, located_at
from understudy.registry import module_of
from understudy.units import DEG

if TYPE_CHECKING:
    from understudy.robots.mobile import Config
    from understudy.wire.interface import Wire

Find = Callable[[str], tuple[str, str]]
"""Path and text of a file by its name in the cell file."""


@lru_cache(maxsize=64)
def robot_file(path: str, text: str) -> RobotFile:
    """A robot_config.json; many robots of a cell have the same."""
    return read_robot_file(text, path)


def robot_of(
    name: str, config: "Config", file: RobotFile, markers: tuple[BarcodeMarker, ...] = ()
) -> RobotFile:
    """The file of a robot with what the cell file says of it. ``markers``: of the cell."""
    known = file.identity
    code = config.robot_code or (known.robot_code if known.robot_id == name else name)
    identity = replace(known, robot_id=name, robot_code=code)
    profile = file.runtime.simulation_profile or SimulationProfile()
    state = _initial(config, profile.initial_state)
    world = replace(profile.world, barcode_markers=profile.world.barcode_markers + markers)
    profile = replace(profile, initial_state=state, world=world)
    runtime = replace(file.runtime, simulation_profile=profile)
    return replace(file, identity=identity, runtime=runtime)


def _initial(config: "Config", state: InitialState) -> InitialState:
    if config.pose is not None:
        x, y, yaw = config.pose
        state = replace(state, pose=ProfilePose(x, y, yaw * DEG))
    if config.battery_percent is not None:
        state = replace(state, battery_percent=config.battery_percent)
    return state


# ── the server ──────────────────────────────────────────────────────────────────────────────────


def wire_of(robots: Mapping[str, "Config"], given: Mapping[str, Any] | None, find: Find) -> "Wire":
    """The wire to NATS: the key `nats` of the cell file, or that of the robots' files."""
    found: tuple[str, Nats] | None = None
    for name, config in robots.items():
        with located_at(f"robots.{name}"):
            path, text = find(config.file)
        nats = robot_file(path, text).nats
        if given is None and nats != Nats():
            if found is not None and found[1] != nats:
                raise ConfigError(
                    f"{found[0]} names another NATS server or other settings of it", file=path,
                    key="nats", allowed="the same in all files, or the key nats in the cell file",
                )  # fmt: skip
            found = path, nats
    keys: Mapping[str, Any] = given or (wire_keys(*found) if found else {})
    with located_at("nats"):
        wire: Wire = read(dict(keys), module_of("wires", "nats").Config)
    return wire


def wire_keys(path: str, nats: Nats) -> dict[str, Any]:
    """The section `nats` of a robot file in the keys of a cell file; file names are seen from it."""
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
