"""Cameras of the vision process, one module per kind of address: cells, drivers, files."""

from understudy.errors import ConfigError, unknown
from understudy.registry import kinds, module_of
from understudy.vision.interface import CameraSource


def check_camera(address: str) -> str:
    """The kind of an address; ConfigError if it is none, or of a kind that is not known."""
    kind, colon, _ = address.partition(":")
    if not colon:
        raise ConfigError(
            "not the address of a camera",
            value=address,
            allowed="understudy://HOST:PORT/NAME, opencv:NUMBER, opencv:FILE, files:DIR",
        )
    if kind not in kinds("cameras"):
        raise unknown("kind of camera", kind, kinds("cameras"))
    return kind


def open_camera(address: str) -> CameraSource:
    """The camera at an address, as `understudy://127.0.0.1:5571/g60`, `opencv:0`, `files:DIR`."""
    camera: CameraSource = module_of("cameras", check_camera(address)).open_camera(address)
    return camera
