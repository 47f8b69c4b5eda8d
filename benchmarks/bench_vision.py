"""From the request to the poses of markers: in the server, and over ZeroMQ from another process.

Rendered pictures with grey noise, four AprilTags of 30 mm, 400 mm below the camera. The peer finds
the same markers with OpenCV's own refinement of comparable accuracy, in the same pictures.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np

from benchmarks import Row
from benchmarks.bench_kuka import ms
from understudy.sight.faces import Face, marker_face, plain
from understudy.sight.frame import Frame
from understudy.sight.lens import Lens
from understudy.sight.markers import MarkerFinder, marker_pattern, marker_place, paper_size
from understudy.sight.render import render
from understudy.space.pose import Pose
from understudy.space.transform import matrix
from understudy.vision.cameras.files import write_frame
from understudy.vision.detectors import markers
from understudy.vision.interface import Shot
from understudy.vision.server import Eye, Named, VisionServer
from understudy.wire.zmq_request import ZmqRequester

DICTIONARY, SIZE = "DICT_APRILTAG_36h11", 0.03
CAPTURE = b'{"command": "capture"}'
PICTURES, ROUNDS = 8, 25
AIM = "p95 <= 25 ms at 640×480"
LENSES = (
    Lens(640, 480, 600.0, 600.0, 320.0, 240.0, (-0.12, 0.08, 0.0, 0.0, 0.0)),
    Lens(1280, 960, 1200.0, 1200.0, 640.0, 480.0, (-0.12, 0.08, 0.0, 0.0, 0.0)),
)


class Frames:
    """A camera that has all its pictures already."""

    def __init__(self, frames: Sequence[Frame]) -> None:
        self._frames = cycle(frames)

    def grab(self, shot: Shot, seconds: float) -> Frame:
        return next(self._frames)

    def close(self) -> None: ...


def rows() -> list[Row]:
    found = []
    for lens in LENSES:
        frames = pictures(lens)
        peer = durations(opencv_refinement(frames), PICTURES)
        what = f"4 markers, {lens.width}×{lens.height}"
        ours = durations(in_server(frames), PICTURES * ROUNDS)
        found.append(row(f"capture to pose, {what}", ours, peer))
        found.append(row(f"over ZeroMQ, from PNG files, {what}", over_zeromq(frames), peer))
    return found


def row(what: str, ours: list[float], peer: list[float]) -> Row:
    mine, theirs = p95(ours), p95(peer)
    figure = f"p95 {ms(mine)}, median {ms(float(np.median(ours)))}"
    return Row(what, figure, f"CORNER_REFINE_APRILTAG {ms(theirs)}", f"{mine / theirs:.3f}", AIM)


def p95(samples: list[float]) -> float:
    return float(np.percentile(samples, 95))


def durations(work: Callable[[], None], count: int) -> list[float]:
    work()
    found = []
    for _ in range(count):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return found


def pictures(lens: Lens) -> list[Frame]:
    rng = np.random.default_rng(1)
    frames = []
    for number in range(PICTURES):
        flange = matrix(Pose(0.0, 0.0, 0.4, np.pi, 0.0, rng.uniform(-1, 1)))
        light = render(scene(rng), lens, flange).light
        noisy = np.clip(light + rng.normal(size=light.shape) * 2.0, 0, 255).astype(np.uint8)
        frames.append(Frame(number + 1, 0.1 * number, noisy, lens, flange=flange))
    return frames


def scene(rng: np.random.Generator) -> list[Face]:
    paper = paper_size(DICTIONARY, SIZE)
    faces = [marker_face(plain((120, 120, 120)), 2.0, 2.0)]
    for number, (x, y) in enumerate([(-0.05, -0.05), (0.05, -0.05), (-0.05, 0.05), (0.05, 0.05)]):
        dx, dy = rng.uniform(-0.01, 0.01, 2)
        at = Pose(x + dx, y + dy, 0.001, 0.0, 0.0, rng.uniform(-3, 3))
        sheet = marker_face(marker_pattern(DICTIONARY, number), paper, paper)
        faces.append(sheet.moved(matrix(at)))
    return faces


def in_server(frames: Sequence[Frame]) -> Callable[[], None]:
    config = markers.Config(dictionary=DICTIONARY, size_mm=SIZE * 1e3, upright=True)
    detector = Named("markers", markers.build(config, lambda name: b""))
    server = VisionServer(Frames(frames), [detector], Eye(place=np.eye(4)))

    def ask() -> None:
        check(server.handle(CAPTURE))

    return ask


def check(reply: bytes) -> None:
    assert len(json.loads(reply)["objects"]) == 4, reply


def opencv_refinement(frames: Sequence[Frame]) -> Callable[[], None]:
    finder, left = MarkerFinder(DICTIONARY, "apriltag"), cycle(frames)

    def find() -> None:
        frame = next(left)
        assert frame.lens is not None
        for marker in finder.find(frame.picture):
            marker_place(marker.corners, SIZE, frame.lens)

    return find


def over_zeromq(frames: Sequence[Frame]) -> list[float]:
    """Round trips to `understudy vision`, which reads the pictures from files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for frame in frames:
            write_frame(folder / f"{frame.frame_id:06d}.png", frame)
        config, ready = folder / "vision.yaml", folder / "ready"
        detector = {"kind": "markers", "dictionary": DICTIONARY, "size_mm": SIZE * 1e3}
        section = {"camera": f"files:{folder}?loop", "detectors": [detector]}
        config.write_text(json.dumps({"vision": section}))
        command = ["vision", "--config", str(config), "--port", "0", "--ready-file", str(ready)]
        process = subprocess.Popen(
            [sys.executable, "-m", "understudy", *command], stdout=subprocess.DEVNULL
        )
        try:
            while not ready.exists() and process.poll() is None:
                time.sleep(0.05)
            requester = ZmqRequester(json.loads(ready.read_text())["endpoints"]["vision"])
            found = durations(lambda: check(requester.ask([CAPTURE], 60.0)[0]), PICTURES * ROUNDS)
            requester.close()
        finally:
            process.terminate()
            process.wait()
    return found
