"""VirtualCamera: takes pictures of the cell as a machine-vision camera with a trigger does.

A picture is taken when it is asked for. It shows the cell at that instant, and carries the flange
of the robot at that instant. Its noise depends on seed, camera and number of the frame only.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta, Struct

from understudy.devices.camera import (
    BRIGHTEST,
    FAULTS,
    HIGHEST_DB,
    LONGEST_MS,
    LOWEST_DB,
    MOST_GREY,
    SHORTEST_MS,
    Config,
    Exposure,
    Gain,
    Grey,
    Share,
)
from understudy.devices.camera.camera import CameraScene, VisibleCell, color_of, visible_cell
from understudy.errors import ConfigError, Refused, located_at
from understudy.ports.device import DeviceAction, Mount, Preview
from understudy.ports.faults import Faults
from understudy.ports.hmi import PanelRow
from understudy.sight.frame import Frame, FrameError, decode, encode
from understudy.sight.lens import CameraModel, Lens, resized
from understudy.sight.render import Light, Picture, render
from understudy.sight.sensor import blurred, expose, noise_key, noisy_depth
from understudy.simulation.environment import CellEnvironment
from understudy.simulation.workpieces.workpieces import Workpieces
from understudy.space.model.environment import place
from understudy.space.transform import Array
from understudy.units import MM, seconds

USUAL_EXPOSURE_MS = 10.0
"""At which the brightness of the light is as it is given."""
PREPARED_PX = 64
"""Width of the picture that is rendered before the first one that a client asks for."""
FAULT_WORDS: Mapping[str, str] = {
    "dark": "the picture is dark",
    "blur": "the picture is out of focus",
    "noise": "the picture has much noise",
}


class State(Struct):
    """The state of a camera in a snapshot. `frames`: pictures so far. `disturbed`: faults that an
    operator or a rule has injected, with their figure. `frozen`: the frame that is sent again and
    again, as on the wire."""

    frames: Annotated[int, Meta(ge=0, lt=1 << 62)] = 0
    exposure_ms: Exposure = USUAL_EXPOSURE_MS
    gain_db: Gain = 0.0
    noise_grey: Grey = 0.0
    brightness: Annotated[float, Meta(ge=0, le=BRIGHTEST)] = 1.0
    ambient: Share = 0.6
    disturbed: dict[str, float] = {}
    silent: bool = False
    frozen: list[bytes] = []


class CameraStatus(Struct, frozen=True):
    frames: int
    exposure_ms: float
    gain_db: float
    noise_grey: float
    brightness: float
    ambient: float
    width: int
    height: int
    faults: tuple[str, ...]


class Disturbance(NamedTuple):
    """What faults do to a picture: the share of the light that arrives, radius of the blur, noise
    beside the usual one."""

    share: float = 1.0
    blur: float = 0.0
    noise: float = 0.0


class VirtualCamera:
    """A `Device` of a robot; it also `SeesCell`, `HasActions` and `HasPanel`."""

    def __init__(self, name: str, config: Config, mount: Mount) -> None:
        self.name = name
        self._config = config
        self._robot = mount.robot
        self._seed = mount.seed
        self._fault_source = mount.fault_source
        assert mount.camera is not None
        self.model = true_camera(config, mount.camera())
        self.starting = False
        self._scene: CameraScene | None = None
        self._cell: VisibleCell | None = None
        self.state = State(
            exposure_ms=config.exposure_ms,
            gain_db=config.gain_db,
            noise_grey=config.noise_grey,
            brightness=config.light.brightness,
            ambient=config.light.ambient,
        )

    # ── scene ──

    def see(
        self,
        environment: CellEnvironment,
        workpieces: Workpieces | None,
        robots: Mapping[str, Any],
        components: Mapping[str, Any],
    ) -> None:
        cell = visible_cell(environment, workpieces, robots, components)
        config, self._cell = self._config, cell
        with located_at(self.name):
            if self.model.on_flange and cell.flange(self._robot, 0) is None:
                raise ConfigError("this robot has no flange", allowed="mount: eye_to_hand")
            colors = color_of(config.object_color), color_of(config.robot_color)
            self._scene = CameraScene(cell, *colors)

    def prepare(self) -> Iterator[None]:
        from understudy.sight.warm import warm

        warm()
        yield
        self.look(0, scaled(self.model.lens, PREPARED_PX), depth=True)()

    def flange(self, now: int) -> Array | None:
        """The flange of the robot in the cell, if it has one."""
        assert self._cell is not None, "the camera is not in a cell yet"
        return self._cell.flange(self._robot, now)

    def superseded(self, trigger: str) -> bool:
        """Whether a picture is for a question that the cell does not ask any more, because a
        snapshot was restored or the question was cancelled: it must not count."""
        assert self._cell is not None, "the camera is not in a cell yet"
        return self._cell.superseded(trigger)

    def look(self, now: int, lens: Lens, *, depth: bool) -> Callable[[], Picture]:
        """What is in front of the camera now, without the sensor; rendered by the returned
        function."""
        assert self._scene is not None, "the camera is not in a cell yet"
        flange = self.flange(now)
        return partial(
            render,
            self._scene.faces(now),
            lens,
            self.model.place(np.eye(4) if flange is None else flange),
            light=Light(self._config.light.towards, self.state.ambient),
            background=color_of(self._config.background),
            depth=depth,
        )

    # ── frames ──

    def grab(
        self, now: int, exposure_ms: float | None = None, gain_db: float | None = None
    ) -> Frame | None:
        """Takes a picture; None if the camera does not answer."""
        state = self.state
        state.frames += 1
        drawn = self._drawn(now)
        lost = self._fault_source.draw_fault("frame_lost", self.name, now) is not None
        if state.silent or lost:
            return None
        if state.frozen:
            return decode(state.frozen)
        exposure = state.exposure_ms if exposure_ms is None else exposure_ms
        gain = state.gain_db if gain_db is None else gain_db
        return self._frame(now, exposure, gain, drawn)

    def _frame(self, now: int, exposure_ms: float, gain_db: float, drawn: Disturbance) -> Frame:
        key = noise_key(self._seed, self.name, self.state.frames)
        seen = self.look(now, self.model.lens, depth=self._config.depth)()
        return Frame(
            frame_id=self.state.frames,
            exposed_at=seconds(now),
            picture=self._exposed(seen, exposure_ms, gain_db, drawn, key),
            lens=self.model.lens,
            depth=self._depth(seen, key) if self._config.depth else None,
            flange=self.flange(now) if self._config.flange else None,
            exposure_ms=exposure_ms,
            gain_db=gain_db,
            camera=self._robot,
        )

    def _exposed(
        self, seen: Picture, exposure_ms: float, gain_db: float, drawn: Disturbance, key: int
    ) -> Any:
        """The picture of the sensor: 8 bits, as bright as exposure, gain and light make it."""
        gain = 10.0 ** (gain_db / 20.0)
        light = drawn.share * self.state.brightness * exposure_ms / USUAL_EXPOSURE_MS
        sigma = float(np.hypot(self.state.noise_grey, drawn.noise)) * gain
        return expose(blurred(seen.light, drawn.blur), light * gain, sigma, key)

    def preview(self, now: int, width: int, *, depth: bool) -> Callable[[], Preview] | Refused:
        """What the camera sees now, in a smaller picture; it is no frame."""
        state, lens = self.state, scaled(self.model.lens, width)
        if state.silent:
            return Refused("the camera does not answer: reset its fault")
        frozen = decode(state.frozen) if state.frozen else None
        injected = self._disturbance(state.disturbed)
        key = noise_key(self._seed, f"{self.name}.preview", now)
        look = self.look(now, lens, depth=depth)
        exposure, gain = state.exposure_ms, state.gain_db
        smaller = injected._replace(blur=injected.blur * lens.width / self.model.lens.width)

        def picture() -> Preview:
            if frozen is not None:
                return Preview(smaller_picture(frozen.picture, lens))
            seen = look()
            if depth:
                return depth_preview(self._depth(seen, key))
            return Preview(self._exposed(seen, exposure, gain, smaller, key))

        return picture

    def _depth(self, seen: Picture, key: int) -> Any:
        nearest, farthest = (value * MM for value in self._config.depth_range_mm)
        measured = (seen.depth >= nearest) & (seen.depth <= farthest)
        depth = np.where(measured, seen.depth, np.float32(0.0))
        return noisy_depth(depth, self._config.depth_noise_mm * MM, key ^ 1)

    def _drawn(self, now: int) -> Disturbance:
        """The faults of this frame: injected ones, and those of rules. Every rule is drawn for
        every frame, so that none changes the draws of another."""
        found = dict(self.state.disturbed)
        for kind, figure in (("dark", "share"), ("blur", "px"), ("noise", "grey")):
            fault = self._fault_source.draw_fault(f"frame_{kind}", self.name, now)
            if fault is not None:
                found[kind] = fault.parameters[figure]
        return self._disturbance(found)

    @staticmethod
    def _disturbance(found: Mapping[str, float]) -> Disturbance:
        return Disturbance(found.get("dark", 1.0), found.get("blur", 0.0), found.get("noise", 0.0))

    # ── settings ──

    def actions(self) -> Mapping[str, DeviceAction]:
        return {
            "set_camera_exposure": DeviceAction(
                "set the exposure of the camera", ("exposure_ms",), self._set_exposure
            ),
            "set_camera_gain": DeviceAction(
                "set the gain of the camera", ("gain_db",), self._set_gain
            ),
            "set_camera_light": DeviceAction(
                "set the brightness of the light, and the share that comes from everywhere",
                ("brightness", "ambient"),
                self._set_light,
            ),
            "set_camera_noise": DeviceAction(
                "set the noise of the camera in grey values", ("noise_grey",), self._set_noise
            ),
        }

    def _set_exposure(self, now: int, exposure_ms: float) -> Refused | None:
        return self._set({"exposure_ms": (exposure_ms, SHORTEST_MS, LONGEST_MS)})

    def _set_gain(self, now: int, gain_db: float) -> Refused | None:
        return self._set({"gain_db": (gain_db, LOWEST_DB, HIGHEST_DB)})

    def _set_light(self, now: int, brightness: float, ambient: float) -> Refused | None:
        return self._set(
            {"brightness": (brightness, 0.0, BRIGHTEST), "ambient": (ambient, 0.0, 1.0)}
        )

    def _set_noise(self, now: int, noise_grey: float) -> Refused | None:
        return self._set({"noise_grey": (noise_grey, 0.0, MOST_GREY)})

    def _set(self, values: Mapping[str, tuple[float, float, float]]) -> Refused | None:
        """Sets values, given with their limits, or none of them."""
        for key, (value, low, high) in values.items():
            if not low <= value <= high:
                return Refused(f"{key} {value:g} is outside {low:g} … {high:g}")
        for key, (value, _, _) in values.items():
            setattr(self.state, key, value)
        return None

    # ── faults ──

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        kind = fault.removeprefix("camera_")
        if not fault.startswith("camera_"):
            return Refused(f"{fault} cannot be injected: it acts only by a scenario rule")
        if kind in _OF_THE_CAMERA:
            _OF_THE_CAMERA[kind](self, now)
        else:
            (self.state.disturbed[kind],) = parameters.values()
        return None

    def _stop_answering(self, now: int) -> None:
        self.state.silent = True

    def _freeze(self, now: int) -> None:
        state = self.state
        if not state.frozen and (frame := self.grab(now)) is not None:
            state.frozen = encode(frame)

    def reset(self, now: int) -> None:
        self.state.disturbed = {}
        self.state.silent = False
        self.state.frozen = []

    def active_faults(self) -> Sequence[str]:
        state = self.state
        found = [FAULT_WORDS[kind] for kind in state.disturbed]
        found += ["the picture is frozen"] if state.frozen else []
        return [*found, "the camera does not answer"] if state.silent else found

    # ── component ──

    def next_wake(self) -> int | None:
        return None

    def wake(self, now: int) -> None:
        return None

    def busy(self) -> bool:
        return False

    def panel(self, now: int) -> tuple[PanelRow, ...]:
        status = self.status(now)
        return (
            PanelRow("Frames", status.frames, state="fault" if status.faults else "ok"),
            PanelRow("Exposure", status.exposure_ms, "ms"),
            PanelRow("Gain", status.gain_db, "dB"),
            PanelRow("Brightness", status.brightness),
            PanelRow("Noise", status.noise_grey),
        )

    def status(self, now: int) -> CameraStatus:
        state, lens = self.state, self.model.lens
        return CameraStatus(
            frames=state.frames,
            exposure_ms=state.exposure_ms,
            gain_db=state.gain_db,
            noise_grey=state.noise_grey,
            brightness=state.brightness,
            ambient=state.ambient,
            width=lens.width,
            height=lens.height,
            faults=tuple(self.active_faults()),
        )

    def restored(self) -> None:
        for kind, value in self.state.disturbed.items():
            fault = FAULTS.get(f"camera_{kind}")
            if fault is None or not fault.figures:
                raise ValueError(f"unknown fault of a camera: {kind}")
            fault.parameters(kind, dict.fromkeys(fault.figures, value))
        if self.state.frozen:
            try:
                decode(self.state.frozen)
            except FrameError as problem:
                raise ValueError(str(problem)) from None


def scaled(lens: Lens, width: int) -> Lens:
    """The same view in a picture of at most this width."""
    share = min(1.0, width / lens.width)
    return resized(lens, max(1, round(lens.width * share)), max(1, round(lens.height * share)))


def smaller_picture(picture: Any, lens: Lens) -> Any:
    """Single pixels of a picture, as many as the lens has."""
    height, width, _ = picture.shape
    rows = np.arange(lens.height) * height // lens.height
    return picture[rows[:, None], np.arange(lens.width) * width // lens.width]


def depth_preview(depth: Any) -> Preview:
    """Near is bright; what was not measured is black."""
    measured = depth[depth > 0.0]
    if not measured.size:
        return Preview(np.zeros((*depth.shape, 3), dtype=np.uint8))
    low, high = float(measured.min()), float(measured.max())
    share = (depth - low) / max(high - low, 1e-9)
    grey = np.where(depth > 0.0, 255.0 - 215.0 * share, 0.0).astype(np.uint8)
    return Preview(np.repeat(grey[..., None], 3, axis=2), low, high)


def true_camera(config: Config, believed: CameraModel) -> CameraModel:
    """The camera of the cell file; what it leaves open is as the section `vision` has it. A picture
    of another size, without other intrinsics, shows the same view."""
    given, known = config.pose_mm_deg, believed.lens
    at = believed.at if given is None else place(given[:3], given[3:])
    on_flange = believed.on_flange if config.mount is None else config.mount == "eye_in_hand"
    lens = resized(known, config.width_px or known.width, config.height_px or known.height)
    keys = ("fx", "fy", "cx", "cy")
    own = {key: getattr(config, f"{key}_px") for key in keys} | {"distortion": config.distortion}
    chosen = {key: value for key, value in own.items() if value is not None}
    return CameraModel(dataclasses.replace(lens, **chosen), at, on_flange)


_OF_THE_CAMERA: Mapping[str, Callable[[VirtualCamera, int], None]] = {
    "silent": VirtualCamera._stop_answering,
    "frozen": VirtualCamera._freeze,
}
"""Faults that change what the camera sends; the others have a figure and change each picture."""
