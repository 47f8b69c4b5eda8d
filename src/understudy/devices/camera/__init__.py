"""A virtual camera: it renders the cell as a camera on the flange, or beside the robot, sees it."""

import math
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from understudy.devices.camera.reactions import REACTIONS as REACTIONS
from understudy.errors import ConfigError
from understudy.ports.faults import Fault, Faults, Figure
from understudy.sight.lens import Coefficient, Focus, Middle
from understudy.space.model.appearance import ColorName

if TYPE_CHECKING:
    from understudy.devices.camera.camera import VirtualCamera
    from understudy.ports.device import Mount

KERNELS = ("sight",)
ONLY_RUNNING = True
"""It sees the parts and robots of a running cell; programs do not use it."""
LARGEST_SIDE = 4096
Pixels = Annotated[int, Meta(ge=16, le=LARGEST_SIDE)]
FarthestMm = Annotated[float, Meta(ge=-1e6, le=1e6)]
SixNumbers = tuple[FarthestMm, FarthestMm, FarthestMm, float, float, float]
SHORTEST_MS, LONGEST_MS = 0.001, 10_000.0
LOWEST_DB, HIGHEST_DB = -20.0, 48.0
MOST_GREY = 128.0
BRIGHTEST = 100.0
Exposure = Annotated[float, Meta(ge=SHORTEST_MS, le=LONGEST_MS)]
Gain = Annotated[float, Meta(ge=LOWEST_DB, le=HIGHEST_DB)]
Grey = Annotated[float, Meta(ge=0, le=MOST_GREY)]
Share = Annotated[float, Meta(ge=0, le=1)]


# ── settings ──


class LightConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The light in front of a virtual camera. `towards`: the direction to a lamp far away, in the
    cell. `ambient`: share of the light that comes from everywhere. `brightness`: 1 shows white
    paper as 255 at 10 ms and 0 dB."""

    towards: tuple[float, float, float] = (0.3, 0.2, 1.0)
    ambient: Share = 0.6
    brightness: Annotated[float, Meta(ge=0, le=BRIGHTEST)] = 1.0

    def __post_init__(self) -> None:
        if not 1e-9 < math.hypot(*self.towards) < 1e9:
            raise ValueError("`towards` is not a direction")


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The true camera. What is not given is as the section `vision` of the robot has it, with its
    calibration file: then the vision process believes the truth.

    `pose_mm_deg`: on the flange (`eye_in_hand`) or in the cell (`eye_to_hand`). `distortion`: k1 k2
    p1 p2 k3, as OpenCV has them. `noise_grey`: standard deviation of the noise in grey values at
    0 dB. `depth`: frames have a depth image, with noise of `depth_noise_mm`; nothing beyond
    `depth_range_mm` is measured. `flange`: frames carry the flange of the robot at their exposure;
    false: as most real cameras, that know no robot.
    """

    mount: Literal["eye_in_hand", "eye_to_hand"] | None = None
    pose_mm_deg: SixNumbers | None = None
    width_px: Pixels | None = None
    height_px: Pixels | None = None
    fx_px: Focus | None = None
    fy_px: Focus | None = None
    cx_px: Middle | None = None
    cy_px: Middle | None = None
    distortion: tuple[Coefficient, Coefficient, Coefficient, Coefficient, Coefficient] | None = None
    exposure_ms: Exposure = 10.0
    gain_db: Gain = 0.0
    noise_grey: Grey = 2.0
    light: LightConfig = LightConfig()
    background: ColorName = "#5a5a5a"
    object_color: ColorName = "#8f9498"
    robot_color: ColorName = "#ff5e00"
    depth: bool = False
    depth_noise_mm: Annotated[float, Meta(ge=0, le=1000)] = 0.0
    depth_range_mm: tuple[float, float] = (1.0, 20_000.0)
    flange: bool = True

    def __post_init__(self) -> None:
        numbers = (*(self.pose_mm_deg or ()), *(self.distortion or ()), *self.depth_range_mm)
        if not all(map(math.isfinite, numbers)):
            raise ValueError("a number is not finite")
        nearest, farthest = self.depth_range_mm
        if not 0.0 <= nearest < farthest:
            raise ValueError("depth_range_mm is the nearest and the farthest distance")

    def check_size(self, width_px: int, height_px: int) -> None:
        """Real cameras may be larger than what is rendered here."""
        for key, side in (("width_px", width_px), ("height_px", height_px)):
            if getattr(self, key) is None and side > LARGEST_SIDE:
                raise ConfigError(
                    "too large for the virtual camera, which takes its size from here",
                    key=key,
                    value=side,
                    allowed=f"16 … {LARGEST_SIDE}, or another `{key}` in the key `camera`",
                )


# ── faults ──

DARKNESS = {"share": Figure(0.02, 0.0, 1.0)}
BLUR = {"px": Figure(4.0, 0.0, 50.0)}
NOISE = {"grey": Figure(30.0, 0.0, MOST_GREY)}
FAULTS: Faults = {
    "camera_dark": Fault("brought", "only a share of the light arrives, until reset", DARKNESS),
    "camera_blur": Fault("brought", "pictures are out of focus until reset", BLUR),
    "camera_noise": Fault("brought", "pictures have more noise until reset", NOISE),
    "camera_frozen": Fault("brought", "the camera sends one frame again and again until reset"),
    "camera_silent": Fault("brought", "the camera does not answer until reset"),
    "frame_dark": Fault("asked", "only a share of the light arrives in a frame", DARKNESS),
    "frame_blur": Fault("asked", "a frame is out of focus", BLUR),
    "frame_noise": Fault("asked", "a frame has more noise", NOISE),
    "frame_lost": Fault("asked", "a frame is not sent"),
}


def build(name: str, config: Config, mount: "Mount") -> "VirtualCamera":
    if mount.camera is None:
        raise ConfigError("a camera belongs to a robot of a running cell; mount it on one")
    from understudy.devices.camera.camera import VirtualCamera

    return VirtualCamera(name, config, mount)
