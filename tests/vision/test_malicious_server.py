"""A vision server that lies: the arm goes only where a valid answer to the present question sends
it, and the hand never opens."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.vision.loop_cell import LoopCell

SCANNED = ("IDLE", "MOVE_TO_SCAN", "SCANNING", "ERROR")
"""States in which the job knows no part."""
OBJECT = {
    "id": 1, "class": "cube", "confidence": 1.0, "bbox": [1, 1, 9, 9],
    "pose": {"x": 0.0, "y": 0.0, "z": 320.0, "rx": 180.0, "ry": 0.0, "rz": 0.0},
}  # fmt: skip
Lie = Callable[[dict[str, Any]], bytes]


def reply(request: dict[str, Any], **keys: Any) -> bytes:
    """A reply to this request; NaN and Infinity are written as Python does."""
    whole = {"success": True, "request_id": request["request_id"], "objects": [OBJECT], **keys}
    return json.dumps(whole).encode()


def with_pose(**pose: Any) -> Lie:
    return lambda request: reply(request, objects=[OBJECT | {"pose": OBJECT["pose"] | pose}])  # type: ignore[operator]


def with_object(**keys: Any) -> Lie:
    return lambda request: reply(request, objects=[OBJECT | keys])


WRONG: dict[str, Lie] = {
    "NaN": with_pose(x=float("nan")),
    "infinite": with_pose(z=float("inf")),
    "1e308": with_pose(y=1e308),
    "digits without an end": lambda r: reply(r).replace(b"320.0", b"9" * 5000),
    "a pose of texts": with_pose(x="0"),
    "a pose without z": with_object(pose={"x": 0.0, "y": 0.0}),
    "confidence above 1": with_object(confidence=2.0),
    "confidence NaN": with_object(confidence=float("nan")),
    "a class of a megabyte": with_object(**{"class": "x" * 1_000_000}),
    "an id beyond 64 bits": with_object(id=10**30),
    "the id of another request": lambda r: reply(r, request_id=r["request_id"] - 1),
    "the id of a later request": lambda r: reply(r, request_id=r["request_id"] + 1),
    "an id of another type": lambda r: reply(r, request_id=str(r["request_id"])),
    "bytes that are no text in a key that is skipped": lambda r: reply(r).replace(
        b'"bbox"', b'"b\xd8\xe0x"'
    ),
    "10,000 objects": lambda r: reply(r, objects=[OBJECT] * 10_000),
    "an old picture": lambda r: reply(r, t_exposure=0.0),
    "an exposure of NaN": lambda r: reply(r, t_exposure=float("nan")),
    "not JSON": lambda r: b"\xff\xfe{",
    "nested": lambda r: b"[" * 100_000,
    "nothing": lambda r: b"",
    "5 MB": lambda r: reply(r) + b" " * 5_000_000,
    "no success": lambda r: reply(r, success=False),
    "success is a number": lambda r: reply(r, success=1),
}
UNREACHABLE: dict[str, Lie] = {
    "far away": with_pose(x=1e6),
    "behind the camera": with_pose(z=-5000.0),
    "below the floor": with_pose(z=3000.0),
    "many far away": lambda r: reply(
        r, objects=[OBJECT | {"id": n, "pose": {"x": 1e5, "y": n, "z": 1e5}} for n in range(999)]
    ),
}
"""Valid answers that the arm cannot follow."""


class Attacked:
    """The cell with a server that answers so; it records states and commands to the hand."""

    def __init__(self, folder: Path, lie: Lie) -> None:
        self.bench = LoopCell(folder, "markers")
        self.states: list[str] = []
        self.opened = 0
        self.targets: list[Any] = []
        self.bench.job.on_state(self._changed)
        hand: Any = self.bench.cell.components["g60.gripper"]
        start = hand.start_release

        def start_release(*given: Any, **keys: Any) -> Any:
            self.opened += 1
            return start(*given, **keys)

        hand.start_release = start_release
        self.bench.cell.answer_questions("g60.vision", lambda q: lie(json.loads(q)))

    def _changed(self, old: str, new: str, now: int) -> None:
        self.states.append(new)
        self.targets.append(self.bench.status.current_target)

    def run(self) -> Any:
        assert self.bench.job.start(self.bench.now, max_cycles=1) is None
        self.bench.finish()
        return self.bench.status


@pytest.mark.parametrize("lie", WRONG.values(), ids=list(WRONG))
def test_a_wrong_answer_moves_nothing(lie: Lie, tmp_path: Path) -> None:
    cell = Attacked(tmp_path, lie)
    status = cell.run()
    assert (status.state, status.code) == ("ERROR", "VISION_TIMEOUT")
    assert set(cell.states) <= set(SCANNED)
    assert cell.opened == 0


@pytest.mark.parametrize("lie", UNREACHABLE.values(), ids=list(UNREACHABLE))
def test_a_place_out_of_reach_moves_nothing(lie: Lie, tmp_path: Path) -> None:
    cell = Attacked(tmp_path, lie)
    status = cell.run()
    assert (status.state, status.reason) == ("IDLE", "PICK_OUT_OF_REACH")
    assert set(cell.states) <= set(SCANNED)
    assert cell.opened == 0


def test_a_late_answer_to_an_old_question_changes_nothing_while_a_part_is_carried(
    tmp_path: Path,
) -> None:
    bench = LoopCell(tmp_path, "markers")
    vision: Any = bench.cell.components["g60.vision"]
    assert bench.job.start(bench.now, max_cycles=1) is None
    bench.run_to("MOVE_TO_PLACE")
    target = bench.status.current_target
    for number in range(vision.state.tickets + 3):
        vision.answered(number, reply({"request_id": number}), bench.now)
        vision.unanswered(number, "lost", bench.now)
    bench.run(0.1)
    assert bench.status.current_target == target
    assert bench.status.holding
    bench.finish()
    assert bench.status.success_count == 1


def mutated(lie: random.Random, request: dict[str, Any]) -> bytes:
    """A valid reply with some bytes changed, left out or doubled."""
    data = bytearray(reply(request))
    for _ in range(lie.randrange(1, 4)):
        at = lie.randrange(len(data))
        data[at : at + lie.randrange(3)] = lie.randbytes(lie.randrange(3))
    return bytes(data)


class Mutating:
    """Answers with mutated replies, and keeps what it has said."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.said: list[bytes] = []

    def __call__(self, request: dict[str, Any]) -> bytes:
        self.said.append(mutated(self._chance, request))
        return self.said[-1]


def check_mutations(folder: Path, seeds: range) -> None:
    for seed in seeds:
        lie = Mutating(seed)
        cell = Attacked(folder, lie)
        cell.run()
        for target in filter(None, cell.targets):
            place = [round(value, 9) for value in target.pose[:3]]
            assert any(place in _poses(data) for data in lie.said), (seed, target)


def _poses(data: bytes) -> list[list[float]]:
    """The places in metres that an answer has, if it is one."""
    try:
        poses = [each["pose"] for each in json.loads(data)["objects"]]
        return [[round(pose[axis] / 1000.0, 9) for axis in "xyz"] for pose in poses]
    except (ValueError, KeyError, TypeError):
        return []


def test_the_arm_goes_only_where_an_answer_has_sent_it(tmp_path: Path) -> None:
    check_mutations(tmp_path, range(10))


@pytest.mark.soak
def test_the_arm_goes_only_where_one_of_300_answers_has_sent_it(tmp_path: Path) -> None:
    check_mutations(tmp_path, range(300))
