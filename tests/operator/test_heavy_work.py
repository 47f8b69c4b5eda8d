"""Heavy work beside the event loop: an emergency stop is answered before it.

Nothing here measures time. A heavy command is begun, the stop is asked for on the same event loop,
and the tests look at which answer comes first, and where the heavy work is done.
"""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from benchmarks.bench_stop import torus

from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.errors import ConfigError, Refused
from understudy.operator import background
from understudy.operator.background import CANCELLED, ENDED, FOR_COMMANDS, MESHES
from understudy.ports.hmi import Later
from understudy.ports.program import LONGEST_LINE, MOST_LINES
from understudy.space.collision import solids
from understudy.space.model import shapes
from understudy.space.model.environment import MOST_OBJECTS
from understudy.space.model.shapes import MOST_TRIANGLES, mesh_from_bytes
from understudy.units import NS_PER_SECOND

SMALL, FULL = (72, 36), (320, 160)
"""Rows and columns of a torus: 5,184 and 102,400 triangles."""
PROGRAM = "G90\nG1 F1000 X400 Y0 Z400 A180 B0 C0\nM3\n" + "G1 X410\nG1 X400\n" * 10_000
CELL = """
robots:
  g60: {kind: arm, model: g60}
environment:
  objects:
    - {name: floor, type: box, position_mm: [0, 0, -50], dimensions_mm: [4000, 4000, 100]}
"""


class Rig:
    """A live arm in lock-step, with mesh files in its folder."""

    def __init__(self, live: Live) -> None:
        self.live = live

    def call(self, name: str, /, **parameters: Any) -> Any:
        return self.live.commands.call(name, parameters, "operator")

    def add(self, name: str, file: str = "part.stl") -> Any:
        thing = {"name": name, "type": "mesh", "mesh": file, "position_mm": [0, 0, 3000]}
        return self.call("add_object", object=thing)

    async def do(self, name: str, /, **parameters: Any) -> Any:
        answer = await ended(self.call(name, **parameters))
        assert not isinstance(answer, Refused), answer.reason
        return answer

    def names(self) -> list[str]:
        return [thing["name"] for thing in self.call("environment")["objects"]]


async def ended(answer: Any) -> Any:
    if not isinstance(answer, Later):
        return answer
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    answer.then(future.set_result)
    return await future


Test = Callable[[Rig], Coroutine[Any, Any, None]]


def run(folder: Path, test: Test, rate: Any = "step") -> None:
    (folder / "cell.yaml").write_text(CELL)
    if not (folder / "part.stl").exists():
        (folder / "part.stl").write_bytes(torus(*SMALL))

    async def whole() -> None:
        live = Live(load_config(str(folder / "cell.yaml")), Options(rate=rate, ephemeral=True))
        try:
            await test(Rig(live))
        finally:
            await live.stop()

    asyncio.run(whole())


# ── the stop is answered first ──


async def add_mesh(rig: Rig) -> Any:
    return rig.add("part")


async def load_environment(rig: Rig) -> Any:
    return rig.call("load_environment", text="objects: []")


async def check_objects(rig: Rig) -> Any:
    return rig.call("check_objects")


async def draw_mesh(rig: Rig) -> Any:
    await ended(rig.add("part"))
    return rig.call("scene")


async def load_program(rig: Rig) -> Any:
    return rig.call("load_program", robot="g60", text=PROGRAM)


async def start_in_the_middle(rig: Rig) -> Any:
    await rig.do("load_program", robot="g60", text=PROGRAM)
    await rig.do("enable", robot="g60")
    return rig.call("run_program", robot="g60", from_line=15_000, process="leave")


async def process_before(rig: Rig) -> Any:
    await rig.do("load_program", robot="g60", text=PROGRAM)
    return rig.call("process_before", robot="g60", from_line=15_000)


async def restore_program(rig: Rig) -> Any:
    await rig.do("load_program", robot="g60", text=PROGRAM)
    taken = (await rig.do("snapshot"))["snapshot"]
    await rig.do("load_program", robot="g60", text="G0 X1")
    return rig.call("restore", snapshot=msgspec.to_builtins(taken))


async def restore_mesh(rig: Rig) -> Any:
    await ended(rig.add("part"))
    taken = (await rig.do("snapshot"))["snapshot"]
    await rig.do("clear_environment")
    shapes._meshes.clear()  # as in a new process
    return rig.call("restore", snapshot=msgspec.to_builtins(taken))


HEAVY = [
    add_mesh, load_environment, check_objects, draw_mesh, load_program, start_in_the_middle,
    process_before, restore_program, restore_mesh,
]  # fmt: skip


@pytest.mark.parametrize("heavy", HEAVY)
def test_an_emergency_stop_is_answered_before_heavy_work(
    tmp_path: Path, heavy: Callable[[Rig], Coroutine[Any, Any, Any]]
) -> None:
    async def test(rig: Rig) -> None:
        answers: list[str] = []
        later = await heavy(rig)
        assert isinstance(later, Later), later
        later.then(lambda answer: answers.append(type(answer).__name__))
        assert rig.call("emergency_stop")["state"] == "ERROR"
        assert answers == []
        await ended(later)

    run(tmp_path, test, rate=1.0)


def test_a_mesh_is_read_and_repaired_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading, repair and tree of a mesh cost nothing in the process of the cell, neither when it
    is added, nor when it is drawn, held, put down, or restored."""

    def never(*given: Any) -> Any:
        raise AssertionError("heavy work in the process of the cell")

    monkeypatch.setattr(shapes, "repaired", never)
    monkeypatch.setattr(shapes, "load_scene", never)
    monkeypatch.setattr(shapes, "_outer_hull", never)
    monkeypatch.setattr(solids, "build_tree", never)

    async def test(rig: Rig) -> None:
        assert "part" in [each["name"] for each in (await ended(rig.add("part")))["objects"]]
        await rig.do("scene")
        await rig.do("attach", robot="g60", name="part")
        rig.live.advance(0.1)
        await rig.do("detach", robot="g60", name="part")
        rig.live.advance(0.1)
        taken = (await rig.do("snapshot"))["snapshot"]
        await rig.do("restore", snapshot=msgspec.to_builtins(taken))
        rig.live.advance(0.1)
        assert rig.names() == ["floor", "part"]

    run(tmp_path, test)


def test_a_change_around_an_arm_copies_no_geometry(tmp_path: Path) -> None:
    """The arrays of a mesh are stored once: two worlds with the same mesh share them."""

    async def test(rig: Rig) -> None:
        await ended(rig.add("part"))
        rig.live.advance(0.01)
        watch: Any = rig.live._cell.components["g60.collision"]
        before = watch._scene.detector.world.solids
        box = {"name": "box", "type": "box", "dimensions_mm": [9, 9, 9]}
        await rig.do("add_object", object=box)
        rig.live.advance(0.01)
        after = watch._scene.detector.world.solids
        assert len(after.traits) == len(before.traits) + 1
        assert after.points is before.points
        assert after.nodes is before.nodes

    run(tmp_path, test)


# ── order and time ──


def test_changes_take_effect_in_the_order_of_their_requests(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        box = {"name": "box", "type": "box", "dimensions_mm": [9, 9, 9]}
        later = [
            rig.add("a"),
            rig.call("add_object", object=box),
            rig.add("b"),
            rig.call("snapshot"),
            rig.call("remove_object", name="a"),
        ]
        answers = [await ended(each) for each in later]
        shown = [[each["name"] for each in answers[n]["objects"]] for n in (0, 1, 2, 4)]
        assert shown[0] == ["floor", "a"]
        assert shown[1] == ["floor", "a", "box"]
        assert shown[2] == ["floor", "a", "box", "b"]
        assert shown[3] == ["floor", "box", "b"]
        await rig.do("restore", snapshot=msgspec.to_builtins(answers[3]["snapshot"]))
        assert rig.names() == ["floor", "a", "box", "b"]

    run(tmp_path, test)


@pytest.mark.parametrize("rate", ["step", "max"])
def test_in_lock_step_time_waits_for_a_change(tmp_path: Path, rate: str) -> None:
    """The object is there at the time at which it was asked for, however long its file takes."""

    async def test(rig: Rig) -> None:
        rig.live.go()
        begun = rig.call("now")["now_ns"]
        added = rig.add("part")
        ahead = rig.call("advance", seconds=1.0)
        times: list[int] = []
        added.then(lambda _: times.append(rig.call("now")["now_ns"]))
        assert isinstance(ahead, Later)
        await ended(ahead)
        assert len(times) == 1
        assert times[0] - begun < NS_PER_SECOND // 10
        assert rig.call("now")["now_ns"] >= begun + NS_PER_SECOND

    run(tmp_path, test, rate)


# ── failures and limits ──


def test_a_worker_that_is_killed_is_reported_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel does when memory runs out."""
    monkeypatch.setitem(FOR_COMMANDS, MESHES, "tests.operator.background.works:killed")

    async def test(rig: Rig) -> None:
        refused = await ended(rig.add("part"))
        assert isinstance(refused, Refused)
        assert refused.reason.startswith("the meshes were not read: ")
        assert rig.names() == ["floor"]
        monkeypatch.undo()
        await ended(rig.add("part"))
        assert rig.names() == ["floor", "part"]

    run(tmp_path, test)


def test_a_damaged_mesh_is_refused_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "part.stl").write_bytes(b"solid nothing")

    async def test(rig: Rig) -> None:
        refused = await ended(rig.add("part"))
        assert isinstance(refused, Refused)
        assert "mesh" in refused.reason
        assert rig.names() == ["floor"]

    run(tmp_path, test)


def test_the_end_of_the_cell_answers_those_who_wait(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        waiting = [rig.add("a"), rig.call("check_objects")]
        await rig.live.stop()
        reasons = [(await ended(each)).reason for each in waiting]
        assert reasons == [ENDED.reason, ENDED.reason]

    run(tmp_path, test)


def test_work_of_commands_is_listed_with_its_progress(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        await ended(rig.add("part"))
        runs = {run.kind: run for run in rig.call("runs")}
        assert runs[MESHES].state == "done"
        assert runs[MESHES].progress == 1.0
        assert MESHES not in background.KINDS
        refused = rig.call("start_run", kind=MESHES)
        assert isinstance(refused, Refused)

    run(tmp_path, test)


def test_a_program_is_listed_while_it_is_read_and_can_be_cancelled(tmp_path: Path) -> None:
    async def test(rig: Rig) -> None:
        loading = rig.call("load_program", robot="g60", text=PROGRAM)
        (run_,) = rig.call("runs")
        assert (run_.kind, run_.state, run_.for_command) == ("load_program", "running", True)
        rig.call("cancel_run", id=run_.id)
        assert (await ended(loading)).reason == CANCELLED.reason
        assert rig.call("runs") == []
        await rig.do("load_program", robot="g60", text=PROGRAM)
        assert rig.call("runs") == []

    run(tmp_path, test)


def test_limits_are_named(tmp_path: Path) -> None:
    boxes = [
        {"name": f"b{n}", "type": "box", "dimensions_mm": [1, 1, 1]} for n in range(MOST_OBJECTS)
    ]
    too_many = msgspec.json.encode({"objects": [*boxes, boxes[0] | {"name": "more"}]}).decode()

    async def test(rig: Rig) -> None:
        wrong = [
            rig.call("load_environment", text=too_many),
            rig.call("load_program", robot="g60", text="\n" * (MOST_LINES + 1)),
            rig.call("load_program", robot="g60", text="G0\n(" + "x" * LONGEST_LINE),
        ]
        reasons = [(await ended(each)).reason for each in wrong]
        assert f"at most {MOST_OBJECTS}" in reasons[0]
        assert f"more than {MOST_LINES}" in reasons[1]
        assert reasons[2] == f"line 2 has more than {LONGEST_LINE} characters"

    run(tmp_path, test)


def test_a_mesh_with_too_many_triangles_is_refused() -> None:
    with pytest.raises(ConfigError, match=f"at most {MOST_TRIANGLES}"):
        mesh_from_bytes(torus(502, 250), "stl")


def test_a_glance_has_no_large_answers(tmp_path: Path) -> None:
    """Fifty scenes or samples in one answer would take seconds."""

    async def test(rig: Rig) -> None:
        asked = ["scene", "now", "program", "sample"]
        questions = [
            {"command": name, "parameters": {} if name in ("scene", "now") else {"robot": "g60"}}
            for name in asked
        ]
        answers = rig.call("glance", questions=questions)
        assert [answer is not None for answer in answers] == [False, True, False, False]

    run(tmp_path, test)


@pytest.mark.soak
@pytest.mark.parametrize("without", [0, 3])
def test_a_large_mesh_beside_a_stop(tmp_path: Path, without: int) -> None:
    """102,400 triangles, whole and with a gap: the loop turns while they are read."""
    (tmp_path / "part.stl").write_bytes(torus(*FULL, without=without))

    async def test(rig: Rig) -> None:
        later, turns = rig.add("part"), 0
        waiting = asyncio.ensure_future(ended(later))
        while not waiting.done():
            assert rig.call("emergency_stop")["state"] == "ERROR"
            turns += 1
            await asyncio.sleep(0.01)
        assert not isinstance(waiting.result(), Refused)
        assert turns > 10

    run(tmp_path, test, rate=1.0)
