"""VirtualCamera: takes pictures of the cell as a machine-vision camera with a trigger does.

A picture is taken when it is asked for. It shows the cell at that instant, and carries the flange
of the robot at that instant. Its noise depends on seed, camera and number of the frame only. What
it can see are the bodies of the cell, and the faces of them that are rendered.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
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
from understudy.errors import ConfigError, Refused, located_at
from understudy.ports import Component
from understudy.ports.device import DeviceAction, HasFingers, Mount, Preview
from understudy.ports.faults import Faults
from understudy.ports.hmi import PanelRow
from understudy.ports.requests import AsksProcess
from understudy.sight.faces import (
    ROBOT_SIDES,
    SIDES,
    Color,
    FaceSet,
    face_set,
    joined,
    marker_face,
    shape_faces,
    top_of,
)
from understudy.sight.frame import Frame, FrameError, decode, encode
from understudy.sight.image_sensor import blurred, expose, noise_key, noisy_depth
from understudy.sight.lens import CameraModel, Lens, resized
from understudy.sight.render import Light, Picture, render
from understudy.simulation.collision.watch import CollisionWatch
from understudy.simulation.environment import CellEnvironment
from understudy.simulation.workpieces.workpieces import Holder, Workpieces, holders
from understudy.space.model.appearance import PLAIN, Appearance, BoardConfig, MarkerConfig
from understudy.space.model.environment import place
from understudy.space.model.robot import Box, Cylinder
from understudy.space.model.shapes import CollisionObject, Shape
from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix, translation
from understudy.units import MM, seconds

AXES = {"x": 0, "y": 1}
FINGER = re.compile(r"\.finger[^.]*$", re.IGNORECASE)
"""A shape of a tool that the gripper moves, as in the 3D scene of the pages."""


@dataclass(frozen=True, slots=True)
class VisibleBody:
    """A shape and its place in the cell, 4×4. `robot`: it belongs to a robot."""

    shape: Shape
    place: Array
    look: Appearance = PLAIN
    robot: bool = False


class Hand(NamedTuple):
    """The fingers of a robot and where its tool is, seen from the cell."""

    device: HasFingers
    tool: Callable[[int], Pose]

    def shifted(self, place: Array, now: int) -> Array:
        """Where a finger is whose shape, as the tool has it, is at this place: as far inwards as
        the fingers are closed."""
        facts = self.device.fingers()
        if facts is None:
            return place
        tool = matrix(self.tool(now))
        axis = tool[:3, AXES[facts.axis]]
        side = np.sign((place[:3, 3] - tool[:3, 3]) @ axis)
        moved = place.copy()
        moved[:3, 3] -= axis * side * (facts.widest - self.device.opening(now)) / 2.0
        return moved


def hands_of(robots: Mapping[str, Any], parts: Mapping[str, Component]) -> dict[str, Hand]:
    """The robots whose gripper has fingers, by name."""
    found = {}
    for name, part in parts.items():
        owner = name.partition(".")[0]
        tool = getattr(robots.get(owner), "tcp", None)
        if isinstance(part, HasFingers) and tool is not None:
            found[owner] = Hand(part, tool)
    return found


class VisibleCell:
    """The environment, the parts and the robots of a cell. Robots are seen as their collision
    shapes, if they have a collision watch."""

    def __init__(
        self,
        environment: CellEnvironment,
        workpieces: Workpieces | None,
        holding: Mapping[str, Holder],
        watches: Mapping[str, CollisionWatch],
        asking: Sequence[AsksProcess] = (),
        hands: Mapping[str, Hand] = MappingProxyType({}),
    ) -> None:
        self._environment = environment
        self._cell_parts = workpieces
        self._holding = holding
        self._watches = watches
        self._asking = asking
        self._hands = hands
        self._shapes: dict[tuple[str, tuple[float, float, float]], Shape] = {}

    def objects(self) -> tuple[CollisionObject, ...]:
        """The objects of the environment; the same tuple as long as nothing has changed."""
        return self._environment.environment.objects

    def bodies(self, now: int) -> Iterator[VisibleBody]:
        """The parts and the robots."""
        yield from self._parts_now(now)
        for name, watch in self._watches.items():
            yield from self._robot(watch, self._hands.get(name.partition(".")[0]), now)

    def flange(self, robot: str, now: int) -> Array | None:
        """The flange of a robot in the cell; None if it has none."""
        holder = self._holding.get(robot)
        return None if holder is None else holder.flange(now)

    def superseded(self, trigger: str) -> bool:
        """Whether this is the trigger of a question that the cell does not ask any more."""
        return any(part.superseded(trigger) for part in self._asking)

    def _parts_now(self, now: int) -> Iterator[VisibleBody]:
        parts = self._cell_parts
        if parts is None:
            return
        for name in parts.names():
            value = parts.value(name)
            kind = value.type, value.size
            if kind not in self._shapes:
                x, _, z = value.size
                round_one = value.type == "cylinder"
                self._shapes[kind] = Cylinder(x / 2.0, z) if round_one else Box(value.size)
            look = Appearance(value.color, value.marker)
            yield VisibleBody(self._shapes[kind], parts.place(name, now), look)

    def _robot(self, watch: CollisionWatch, hand: Hand | None, now: int) -> Iterator[VisibleBody]:
        """The links, the tool with its fingers as far open as they are, and what is attached; held
        parts are among the parts."""
        own = self._cell_parts.names() if self._cell_parts is not None else ()
        held = tuple(thing for thing in watch.held() if thing.name not in own)
        tool = watch.tool_and_held[0]
        figure = watch.body.figure(tool, held)
        looks = {thing.name: thing.look for thing in watch.body.carried(tool, held)}
        q = watch.plan.at(seconds(now)).position
        frames = figure.foot @ figure.chain.axes_of(np.asarray(q)[None])[0]
        for part in figure.parts:
            place, look = frames[part.body] @ part.place, looks.get(part.name, PLAIN)
            if hand is not None and part.name in looks and FINGER.search(part.name):
                place = hand.shifted(place, now)
            yield VisibleBody(part.shape, place, look, robot=True)


def visible_cell(
    environment: CellEnvironment,
    workpieces: Workpieces | None,
    robots: Mapping[str, Any],
    parts: Mapping[str, Component],
) -> VisibleCell:
    """The cell as its cameras see it."""
    watches = {name: part for name, part in parts.items() if isinstance(part, CollisionWatch)}
    asking = [part for part in parts.values() if isinstance(part, AsksProcess)]
    hands = hands_of(robots, parts)
    return VisibleCell(environment, workpieces, holders(robots, parts), watches, asking, hands)


def color_of(name: str) -> Color:
    """`#d9822b` → red, green and blue."""
    return int(name[1:3], 16), int(name[3:5], 16), int(name[5:7], 16)


class CameraScene:
    """The faces of a cell; those of the environment are kept until it changes."""

    def __init__(self, cell: VisibleCell, object_color: Color, robot_color: Color) -> None:
        self._cell = cell
        self._object_color = object_color
        self._robot_color = robot_color
        self._around: tuple[tuple[CollisionObject, ...], FaceSet] | None = None
        self._sheets: dict[MarkerConfig | BoardConfig, FaceSet | None] = {}
        self._started = False
        for thing in cell.objects():
            self._sheet(thing.look)
        for body in cell.bodies(0):
            self._sheet(body.look)
        self._started = True

    def faces(self, now: int) -> FaceSet:
        bodies = [self._body(body) for body in self._cell.bodies(now)]
        return joined([self._environment(), *bodies])

    def _environment(self) -> FaceSet:
        objects = self._cell.objects()
        if self._around is None or self._around[0] is not objects:
            found = [self._body(VisibleBody(o.shape, o.place, o.look)) for o in objects]
            self._around = objects, joined(found)
        return self._around[1]

    def _body(self, body: VisibleBody) -> FaceSet:
        color = self._robot_color if body.robot else self._object_color
        color = color_of(body.look.color) if body.look.color else color
        sides = ROBOT_SIDES if body.robot else SIDES
        faces, sheet = shape_faces(body.shape, color, sides), self._sheet(body.look)
        if sheet is not None:
            faces = joined([faces, sheet.moved(translation(0.0, 0.0, top_of(body.shape)))])
        return faces.moved(body.place)

    def _sheet(self, look: Appearance) -> FaceSet | None:
        """The marker or board on an object, about the origin."""
        printed = look.marker or look.board
        if printed is None:
            return None
        if printed not in self._sheets:
            try:
                self._sheets[printed] = _printed(printed)
            except ConfigError:
                if self._started:
                    self._sheets[printed] = None  # of a part that was added to the running cell
                else:
                    raise
        return self._sheets[printed]


def _printed(printed: MarkerConfig | BoardConfig) -> FaceSet | None:
    """None without OpenCV: a cell runs without it, only its vision process does not."""
    try:
        from understudy.sight import markers
    except ImportError:
        return None
    if isinstance(printed, MarkerConfig):
        side = markers.paper_size(printed.dictionary, printed.size)
        pattern = markers.marker_pattern(printed.dictionary, printed.id)
        return face_set([marker_face(pattern, side, side)])
    size = printed.columns, printed.rows, printed.square
    board = (
        markers.Charuco(*size, printed.dictionary)
        if printed.type == "charuco"
        else markers.Chessboard(*size)
    )
    return face_set([marker_face(board.pattern(), board.width, board.height)])


USUAL_EXPOSURE_MS = 10.0
"""At which the brightness of the light is as it is given."""
PREPARED_PX = 64
"""Width of the picture that is rendered before the first one that a client asks for."""
LIMITS: Mapping[str, tuple[float, float]] = {
    "exposure_ms": (SHORTEST_MS, LONGEST_MS),
    "gain_db": (LOWEST_DB, HIGHEST_DB),
    "brightness": (0.0, BRIGHTEST),
    "ambient": (0.0, 1.0),
    "noise_grey": (0.0, MOST_GREY),
}
"""Of what an operator may set."""
FAULT_WORDS: Mapping[str, str] = {
    "dark": "the picture is dark",
    "blur": "the picture is out of focus",
    "noise": "the picture has much noise",
}


class State(Struct):
    """The state of a camera in a snapshot. `frames`: pictures so far; `counted_from`: those before
    the counters were zeroed. `disturbed`: faults that an operator or a rule has injected, with
    their figure. `frozen`: the frame that is sent again and again, as on the wire."""

    frames: Annotated[int, Meta(ge=0, lt=1 << 62)] = 0
    counted_from: Annotated[int, Meta(ge=0, lt=1 << 62)] = 0
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
        light = "set the brightness of the light, and the share that comes from everywhere"
        rows = {
            "set_camera_exposure": ("set the exposure of the camera", "exposure_ms"),
            "set_camera_gain": ("set the gain of the camera", "gain_db"),
            "set_camera_light": (light, "brightness", "ambient"),
            "set_camera_noise": ("set the noise of the camera in grey values", "noise_grey"),
        }
        return {
            name: DeviceAction(doc, tuple(keys), partial(self._set, keys))
            for name, (doc, *keys) in rows.items()
        }

    def _set(self, keys: Sequence[str], now: int, *values: float) -> Refused | None:
        """Sets values of the state within their limits, or none of them."""
        for key, value in zip(keys, values, strict=True):
            low, high = LIMITS[key]
            if not low <= value <= high:
                return Refused(f"{key} {value:g} is outside {low:g} … {high:g}")
        for key, value in zip(keys, values, strict=True):
            setattr(self.state, key, value)
        return None

    # ── faults ──

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        kind = fault.removeprefix("camera_")
        if not fault.startswith("camera_"):
            return Refused(f"{fault} cannot be injected: it acts only by a scenario rule")
        state = self.state
        if kind == "silent":
            state.silent = True
        elif kind != "frozen":
            (state.disturbed[kind],) = parameters.values()
        elif not state.frozen and (frame := self.grab(now)) is not None:
            state.frozen = encode(frame)
        return None

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

    def zero_counters(self, now: int) -> None:
        self.state.counted_from = self.state.frames

    def panel(self, now: int) -> tuple[PanelRow, ...]:
        status = self.status(now)
        frames = status.frames - self.state.counted_from
        return (
            PanelRow("Frames", frames, state="fault" if status.faults else "ok"),
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
