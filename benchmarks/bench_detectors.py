"""Detectors of the vision process on rendered pictures: errors against the truth, and CPU time.

A camera 400 mm above a table, lens with distortion, grey noise of 2. The peer of `shapes` is the
usual short way: the rectangle around the coloured region, put onto the table without a correction
of parallax. The peer of `point_cloud` is the mean of the points of the part, that of `onnx` OpenCV
with the same network.
"""

from collections.abc import Callable, Sequence
from time import process_time

import cv2
import numpy as np
from tests.vision.onnx_model import network

from benchmarks import Row
from understudy.sight.cloud import cloud
from understudy.sight.faces import Face, box_faces, marker_face, plain
from understudy.sight.frame import Frame
from understudy.sight.lens import Lens
from understudy.sight.render import render
from understudy.sight.silhouette import on_plane
from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix
from understudy.vision.detectors import onnx, point_cloud, shapes
from understudy.vision.interface import Detector, View
from understudy.vision.server import obstacle_points

BENT = (-0.12, 0.08, 0.0005, -0.0003, 0.0)
LARGE = Lens(1280, 960, 1200.5, 1200.8, 640.0, 480.0, BENT)
SMALL = Lens(640, 480, 600.5, 600.8, 320.0, 240.0, BENT)
ABOVE = matrix(Pose(0.4, 0.0, 0.4, np.pi, 0.0, 0.0))
CUBE, RED = (0.04, 0.04, 0.04), (200, 40, 32)
PICTURES = 40


def scene(at: Array) -> list[Face]:
    table = marker_face(plain((140, 140, 135)), 1.2, 1.2).moved(matrix(Pose(0.4, 0, 0, 0, 0, 0)))
    return [table, *(face.moved(at) for face in box_faces(CUBE, RED))]


def picture(lens: Lens, at: Array, chance: np.random.Generator, *, depth: float = 0.0) -> View:
    """``depth``: standard deviation of the depth image, metres."""
    seen = render(scene(at), lens, ABOVE)
    light = np.clip(np.round(seen.light + chance.normal(0, 2.0, seen.light.shape)), 0, 255)
    far = seen.depth + chance.normal(0, depth, seen.depth.shape) if depth else seen.depth
    frame = Frame(1, 0.0, light.astype(np.uint8), lens, far.astype(np.float32))
    return View(frame, lens, ABOVE)


def pictures(lens: Lens, *, tilt: float, depth: float = 0.0) -> list[tuple[View, Array]]:
    """Cubes at random places, and where they are."""
    chance = np.random.default_rng(1)
    found = []
    for _ in range(PICTURES):
        x, y = chance.uniform((0.3, -0.08), (0.5, 0.08))
        rx, ry = chance.normal(0.0, 1.0, 2) * tilt
        at = matrix(Pose(x, y, 0.02 + 0.05 * (tilt > 0), rx, ry, chance.uniform(-0.7, 0.7)))
        found.append((picture(lens, at, chance, depth=depth), at))
    return found


def errors_and_time(
    detector: Detector, rows: Sequence[tuple[View, Array]]
) -> tuple[float, float, float, int]:
    """p95 of the position in mm and of the turn in degrees, modulo a quarter turn; CPU ms; number
    of pictures in which the cube is found."""
    detector.detect(rows[0][0])  # rays of the lens
    off, turns, begun = [], [], process_time()
    for view, at in rows:
        found = detector.detect(view)
        if len(found) != 1:
            continue
        there = ABOVE @ found[0].place
        off.append(float(np.linalg.norm(there[:3, 3] - at[:3, 3])) * 1e3)
        # the axes of the one cube in the frame of the other: each near to one axis
        between = np.abs(there[:3, :3].T @ at[:3, :3])
        turns.append(float(np.degrees(np.arccos(np.clip(between.max(axis=1).min(), 0, 1)))))
    cpu = (process_time() - begun) / len(rows) * 1e3
    p95 = [float(np.percentile(each, 95)) if each else np.nan for each in (off, turns)]
    return p95[0], p95[1], cpu, len(off)


def naive_shape(view: View) -> Array:
    """The middle of the rectangle around the region, on the table."""
    red = view.frame.picture[..., 0].astype(int) - view.frame.picture[..., 1] > 60
    spots = np.argwhere(red)[:, ::-1].astype(np.float32)
    (x, y), _, _ = cv2.minAreaRect(spots)
    return np.asarray(on_plane(view.lens.rays(np.array([[x, y]])), ABOVE, 0.0)[0])


def naive_cloud(view: View) -> Array:
    assert view.frame.depth is not None
    points = cloud(view.frame.depth, view.lens).reshape(-1, 3) @ ABOVE[:3, :3].T + ABOVE[:3, 3]
    return np.asarray(points[points[:, 2] > 0.02].mean(axis=0)[:2])


def naive_error(way: Callable[[View], Array], rows: Sequence[tuple[View, Array]]) -> float:
    off = [float(np.linalg.norm(way(view) - at[:2, 3])) * 1e3 for view, at in rows]
    return float(np.percentile(off, 95))


def accuracy(
    what: str, detector: Detector, rows: Sequence[tuple[View, Array]],
    way: Callable[[View], Array], aim: str,
) -> list[Row]:  # fmt: skip
    off, turn, cpu, found = errors_and_time(detector, rows)
    peer = naive_error(way, rows)
    return [
        Row(f"{what}: found", f"{found} of {len(rows)}", "–", "–", f"{len(rows)}"),
        Row(f"{what}: error p95", f"{off:.3f} mm, {turn:.3f}°", f"{peer:.2f} mm",
            f"{peer / max(off, 1e-6):.0f}×", aim),
        Row(f"{what}: CPU per picture", f"{cpu:.0f} ms", "–", "–", "–"),
    ]  # fmt: skip


def network_time() -> Row:
    """The detector around a small network, 640×640, beside the network alone."""
    data = network(640, ((1.0, -0.7, -0.7), (-0.7, -0.7, 1.0)), box=80.0, yolov5=False)
    config = onnx.Config("parts.onnx", ("red", "blue"))
    detector = onnx.build(config, lambda name: data)
    view, _ = pictures(SMALL, tilt=0.0)[0]
    bare = cv2.dnn.readNetFromONNX(np.frombuffer(data, dtype=np.uint8))
    blob = cv2.dnn.blobFromImage(np.zeros((640, 640, 3), np.uint8), 1.0 / 255.0)

    def forward() -> None:
        bare.setInput(blob)
        bare.forward()

    ours, peer = (_cpu_ms(task) for task in (lambda: detector.detect(view), forward))
    return Row("onnx, small network 640×640", f"{ours:.1f} ms", f"{peer:.1f} ms alone",
               f"{peer / ours:.2f}×", "–")  # fmt: skip


def _cpu_ms(task: Callable[[], object]) -> float:
    task()
    begun = process_time()
    for _ in range(PICTURES):
        task()
    return (process_time() - begun) / PICTURES * 1e3


def rows() -> list[Row]:
    flat = shapes.ShapeDetector(
        shapes.Config((shapes.PartClass("cube", "#c82820", (40.0, 40.0, 40.0)),))
    )
    cube = (point_cloud.PartClass("cube", (40.0, 40.0, 40.0)),)
    exact = point_cloud.PointCloudDetector(point_cloud.Config(cube))
    noisy = point_cloud.PointCloudDetector(point_cloud.Config(cube, noise_mm=0.2))
    level, tilted = pictures(LARGE, tilt=0.0), pictures(SMALL, tilt=0.15)
    rough = pictures(SMALL, tilt=0.15, depth=2e-4)
    begun = process_time()
    points = [len(obstacle_points(view)) for view, _ in tilted]
    cpu = (process_time() - begun) / len(tilted) * 1e3
    return [
        *accuracy("shapes, 1280×960", flat, level, naive_shape, "≤ 0.5 mm, 0.3°"),
        *accuracy("point_cloud, 640×480", exact, tilted, naive_cloud, "≤ 0.1 mm"),
        *accuracy("point_cloud, noise 0.2 mm", noisy, rough, naive_cloud, "–"),
        network_time(),
        Row("points for obstacles, 640×480", f"{cpu:.0f} ms", "–", "–", f"{max(points)} points"),
    ]
