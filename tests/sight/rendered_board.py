"""Rendered pictures of a board from the poses that a calibration chooses."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.errors import Refused
from understudy.sight.bundle import Corners, small_motion
from understudy.sight.calibration_poses import Sighting, calibration_flanges
from understudy.sight.calibrator import CalibrationPose
from understudy.sight.faces import Face, facing
from understudy.sight.lens import Lens, Mount
from understudy.sight.markers import Board, Charuco, Image, board_place
from understudy.sight.render import render
from understudy.space.transform import Array, inverse

LENS = Lens(640, 480, 600.0, 602.0, 322.0, 238.0, (-0.12, 0.08, 0.001, -0.0005, 0.0))
BOARD = Charuco(9, 7, 0.023)
NOISE = 2.0


def picture_of(board: Board, seen: Array, rng: np.random.Generator, lens: Lens = LENS) -> Image:
    """The picture of a board at this place in the frame of the camera, with grey noise."""
    across, down = np.array([board.width, 0.0, 0.0]), np.array([0.0, board.height, 0.0])
    sheet = facing(Face(np.zeros(3), across, down, board.pattern()), (0.0, 0.0, -1.0))
    light = render([sheet], lens, inverse(seen)).light
    noisy = light + NOISE * rng.standard_normal(light.shape, dtype=np.float32)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


def outline(board: Board) -> Array:
    w, h = board.width, board.height
    return np.array([(0.0, 0.0, 0.0), (w, 0.0, 0.0), (0.0, h, 0.0), (w, h, 0.0)])


@dataclass(frozen=True)
class Session:
    """The true camera, and the poses as pictures show them, with the true flange."""

    camera: Array
    poses: list[CalibrationPose]

    def with_robot_error(self, seed: int, shift: float, turn: float) -> list[CalibrationPose]:
        """The flange as a robot reports it: off by ``shift`` and ``turn``, rms."""
        rng = np.random.default_rng((seed, 1))
        scale = np.repeat([shift, turn], 3) / np.sqrt(3.0)
        return [
            CalibrationPose(
                pose.flange @ small_motion(rng.normal(size=6) * scale), pose.target, pose.corners
            )
            for pose in self.poses
        ]


def session(seed: int, mount: Mount, count: int = 15) -> Session:
    """A calibration with rendered pictures; the arm reaches some of the poses only."""
    rng = np.random.default_rng(seed)
    camera = small_motion(np.array([0.045, -0.012, 0.085, *rng.uniform(-0.3, 0.3, 3)]))
    target = small_motion(np.array([0.5, 0.1, 0.02, *rng.uniform(-0.3, 0.3, 3)]))
    seen = np.eye(4)
    seen[2, 3] = 0.4
    sighting = Sighting(mount, LENS, camera, target, outline(BOARD), seen)

    def allowed(flanges: Sequence[Array]) -> list[bool]:
        return [bool(rng.uniform() < 0.6) for _ in flanges]

    flanges = calibration_flanges(sighting, count, allowed)
    assert not isinstance(flanges, Refused), flanges.reason
    return Session(camera, [captured(each, sighting, rng) for each in flanges])


def captured(flange: Array, sighting: Sighting, rng: np.random.Generator) -> CalibrationPose:
    hand = flange if sighting.mount == "eye_in_hand" else inverse(flange)
    seen = inverse(hand @ sighting.camera) @ sighting.target
    numbers, pixels = BOARD.find(picture_of(BOARD, seen, rng))
    found = board_place(BOARD, numbers, pixels, LENS)
    assert found is not None
    return CalibrationPose(flange, found, Corners(BOARD.points[numbers], pixels))
