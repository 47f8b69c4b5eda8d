"""Rendered pictures for the tests of the vision process."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from understudy.sight.faces import Face, marker_face, plain
from understudy.sight.frame import Frame
from understudy.sight.lens import Lens
from understudy.sight.markers import marker_pattern, paper_size
from understudy.sight.render import render
from understudy.space.pose import Pose
from understudy.space.transform import Array, inverse, matrix, translation
from understudy.vision.interface import CameraError, Shot
from understudy.vision.server import VisionServer

LENS = Lens(640, 480, 600.0, 601.0, 321.0, 239.0, (-0.12, 0.08, 0.0, 0.0, 0.0))
HAND_EYE = matrix(Pose(0.045, -0.012, 0.085, 0.02, -0.01, 0.3))
TABLE = marker_face(plain((120, 120, 120)), 2.0, 2.0).moved(translation(0.0, 0.0, -0.001))
NOISE = 2.0
"""Grey levels, standard deviation."""


def marker_sheet(dictionary: str, number: int, size: float) -> Face:
    """A marker on its paper, in the plane z = 0 about the origin."""
    paper = paper_size(dictionary, size)
    return marker_face(marker_pattern(dictionary, number), paper, paper)


def above(x: float, y: float, height: float, tilt: Sequence[float] = (0.0, 0.0, 0.0)) -> Array:
    """A camera that looks down at the table."""
    return translation(x, y, height) @ matrix(Pose(0, 0, 0, *tilt)) @ matrix(
        Pose(0, 0, 0, np.pi, 0, 0)
    )  # fmt: skip


def photo(faces: Sequence[Face], lens: Lens, camera: Array, seed: int) -> Any:
    """A noisy picture."""
    light = render(faces, lens, camera).light
    noisy = light + np.random.default_rng(seed).normal(size=light.shape) * NOISE
    return np.clip(noisy, 0, 255).round().astype(np.uint8)


@dataclass
class RenderedCamera:
    """A `CameraSource` over a rendered scene: each picture from the next place of the flange."""

    faces: Sequence[Face]
    flanges: Sequence[Array]
    hand_eye: Array = field(default_factory=lambda: HAND_EYE)
    lens: Lens = LENS
    knows_flange: bool = True
    knows_lens: bool = True
    shots: list[Shot] = field(default_factory=list)
    closed: bool = False

    def grab(self, shot: Shot, seconds: float) -> Frame:
        number = len(self.shots)
        self.shots.append(shot)
        if number >= len(self.flanges):
            raise CameraError("no more pictures")
        flange = self.flanges[number]
        picture = photo(self.faces, self.lens, flange @ self.hand_eye, number)
        return Frame(
            number + 1,
            0.5 * number,
            picture,
            self.lens if self.knows_lens else None,
            flange=flange if self.knows_flange else None,
        )

    def close(self) -> None:
        self.closed = True


def flange_of(camera: Array, hand_eye: Array = HAND_EYE) -> Array:
    """The flange whose camera is there."""
    return np.asarray(camera @ inverse(hand_eye))


def dome(count: int, seed: int, centre: Sequence[float], height: float = 0.3) -> Iterator[Array]:
    """Cameras around a target at ``centre``, that look at it from different sides."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        tilt = (*rng.uniform(-0.45, 0.45, 2), rng.uniform(-1.5, 1.5))
        yield translation(*centre) @ matrix(Pose(0, 0, 0, *tilt)) @ above(0, 0, height)


def asker(server: VisionServer) -> Callable[..., Any]:
    """Asks a server and reads its reply."""

    def ask(command: str, request_id: Any = None, **params: Any) -> Any:
        request = {"command": command, "params": params, "request_id": request_id}
        return msgspec.json.decode(server.handle(msgspec.json.encode(request)))

    return ask
