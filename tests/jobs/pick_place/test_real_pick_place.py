"""Pick & place on a REAL arm: a second cell behind sockets is arm, gripper, parts and camera."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from tests.operator.real_pair import Operator, alive, run
from tests.vision.served import served

from understudy.config import load_config
from understudy.config.files import find_cell
from understudy.errors import Refused
from understudy.jobs.arm_motion import NOT_READ
from understudy.jobs.pick_place.manager import IS_RUNNING
from understudy.vision.process import setup_of_cell
from understudy.wire.dial import Destination
from understudy.wire.zmq_request import AskedProcess

pytestmark = pytest.mark.usefixtures("patient_connection")
THERE_RATE = 10.0
"""The cell that stands for the real arm is this much faster, so that the test is."""


def cell(**robot: Any) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(find_cell("pick_place")[1])
    found.pop("hmi")
    found["robots"]["g60"] |= robot
    return found


def write_cells(folder: Path, gripper: dict[str, Any], real_gripper: dict[str, Any]) -> None:
    """The shipped cell `pick_place` as the real one, whose camera does not know the robot, and as
    the one of the operator."""
    there = cell(gripper=gripper, camera={"flange": False})
    faces: dict[str, Any] = {"grblhal": {"port": 0}, "camera": {"port": 0}}
    there["robots"]["g60"]["faces"] = faces
    if gripper["type"] == "ELECTRIC_SERVO":
        faces["gripper"] = {"tcp": {"port": 0}}
    here = cell(gripper=real_gripper, faces={})
    if gripper["type"] == "PNEUMATIC_VACUUM":  # on the top of a block, 25 mm over its middle
        grasp = {"offset_mm_deg": [0, 0, 25, 180, 0, 0], "symmetry_deg": 90}
        here["robots"]["g60"]["pickplace"]["grasps"] = {"*": grasp}
        here["robots"]["g60"]["pickplace"]["place_position"]["z"] = 100
        here["robots"]["g60"]["pallet"]["corner2"]["z"] = 100
    here["robots"]["g60"]["vision"] |= {"source": "process", "camera": "opencv:0"}
    here["robots"]["g60"]["pickplace"] |= {"vision_timeout_ms": 60_000}
    here["robots"]["g60"]["safety"] |= {"vision_timeout_ms": 60_000}
    for name, each in (("there", there), ("here", here)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(each))


FINGERS = {"type": "PNEUMATIC_2FINGER", "fingers": {"open_mm": 60}}


@contextlib.asynccontextmanager
async def real_arm(
    folder: Path, gripper: dict[str, Any] = FINGERS, **real_gripper: Any
) -> AsyncIterator[tuple[Operator, Operator]]:
    """The cell of the real arm, and the operator of the other one, connected to it."""
    write_cells(folder, gripper, {**gripper, **real_gripper})
    async with alive(str(folder / "there.yaml"), "g60", rate=THERE_RATE) as there:
        port = urlsplit(there.endpoints["g60.grblhal"]).port or 0
        if modbus := there.endpoints.get("g60.gripper.tcp"):
            servo = {"real": {"to": urlsplit(modbus).netloc}}
            write_cells(folder, gripper, {**gripper, "servo": servo})
        camera = f"understudy://{urlsplit(there.endpoints['g60.camera']).netloc}/g60"
        file = str(folder / "here.yaml")
        at = Destination("127.0.0.1", port)
        with served(setup_of_cell(load_config(file), camera=camera)) as address:
            async with alive(file, "g60", at=at, real=True) as here:
                here.ask("g60.vision", AskedProcess(address, os.getpid))
                operator = Operator(here, "g60")
                operator.on("set_mode", mode="real")
                await operator.connected()
                yield Operator(there, "g60"), operator


def parts(there: Operator) -> dict[str, Any]:
    found = there.live.on_component("parts", lambda parts, now: parts.status(now))
    return {part.name: part for part in found.parts}


async def ended(operator: Operator) -> dict[str, Any]:
    while (status := operator.on("pick_place"))["running"]:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return dict(status)


async def started(operator: Operator, **options: Any) -> None:
    """Once the inputs of the controller have been read, and the hand is at rest."""
    async with asyncio.timeout(30.0):
        while isinstance(said := operator.ask("start_pick_place", **options), Refused):
            assert said.reason in (NOT_READ.reason, IS_RUNNING.reason)
            await asyncio.sleep(0.02)


async def in_state(operator: Operator, state: str) -> None:
    while operator.on("pick_place")["state"] != state:  # noqa: ASYNC110
        await asyncio.sleep(0.002)


def placed(there: Operator) -> int:
    return sum(1 for part in parts(there).values() if part.pose.y < 0.15 and not part.holder)


CUP = {"type": "PNEUMATIC_VACUUM"}
SERVO = {"type": "ELECTRIC_SERVO"}


@pytest.mark.parametrize("gripper", [FINGERS, CUP, SERVO], ids=lambda each: str(each["type"]))
def test_parts_are_placed_by_a_real_arm_and_gripper(
    tmp_path: Path, gripper: dict[str, Any]
) -> None:
    async def test() -> None:
        async with real_arm(tmp_path, gripper) as (there, operator):
            assert "not enabled" in operator.refusal("start_pick_place")
            operator.on("enable")
            await started(operator, max_cycles=2)
            assert "is running" in operator.refusal("move_to", robot="g60", joints_deg=[0] * 6)
            assert operator.refusal("set_mode", robot="g60", mode="simulation")
            status = await ended(operator)
            assert status["reason"] == "DONE", status
            assert placed(there) == 2
            assert operator.on("pallet")["index"] == 2
            cycles = operator.on("pick_place_cycles")["cycles"]
            assert [each.success for each in cycles] == [True, True]
            said = [event.text for event in operator.do("events")["events"]]
            assert "cycle 2 done" in said

    run(test)


def test_a_part_that_is_lost_in_a_motion_is_known_at_its_end(tmp_path: Path) -> None:
    async def test() -> None:
        async with real_arm(tmp_path) as (there, operator):
            operator.on("enable")
            await started(operator, max_cycles=1)
            await in_state(operator, "MOVE_TO_PLACE")
            there.do("inject", fault="slip", on="g60.gripper")
            status = await ended(operator)
            assert status["code"] == "PART_LOST"

    run(test)


def test_a_stop_brakes_the_real_arm_and_the_hand_keeps_the_part(tmp_path: Path) -> None:
    async def test() -> None:
        async with real_arm(tmp_path) as (there, operator):
            operator.on("enable")
            await started(operator)
            await in_state(operator, "MOVE_TO_PLACE")
            operator.on("stop_pick_place")
            await operator.at_rest()
            assert [part.holder for part in parts(there).values() if part.holder] == ["g60"]
            assert operator.on("pick_place")["holding"]
            assert operator.on("pick_place")["goes_on"], "the next start carries on with it"
            operator.on("release_part")
            while operator.on("pick_place")["holding"]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            assert not any(part.holder for part in parts(there).values())
            await started(operator)
            await in_state(operator, "MOVE_TO_PICK")
            there.on("emergency_stop")
            status = await ended(operator)
            assert status["state"] == "ERROR"
            assert status["code"] == "ARM_FAULT"

    run(test)


def test_a_pause_holds_the_real_arm(tmp_path: Path) -> None:
    async def test() -> None:
        async with real_arm(tmp_path) as (there, operator):
            operator.on("enable")
            await started(operator, max_cycles=1)
            await in_state(operator, "MOVE_TO_PLACE")
            operator.on("pause_pick_place")
            await operator.until(lambda facts: facts["state"] == "Hold" and not facts["moving"])
            assert operator.on("pick_place")["state"] == "PAUSED"
            operator.on("resume_pick_place")
            assert (await ended(operator))["reason"] == "DONE"
            assert placed(there) == 1

    run(test)


NOBODY = Destination("127.0.0.1", 9)


@pytest.mark.parametrize(
    ("section", "keys", "said"),
    [
        ("gripper", {"type": "ELECTRIC_SERVO"}, "name its REAL gripper"),
        ("vision", {"camera": ""}, "its camera is simulated"),
        ("vision", {"source": "ground_truth"}, "sees simulated parts only"),
        ("pickplace", {"insert": {"contact": "DI5"}}, "reports no input during a motion"),
        ("modes", {"start": "WELDING"}, "request the mode PICKPLACE first"),
        ("modes", {"tools": {"PICKPLACE": 1}}, "tool 2 is active; PICKPLACE needs tool 1"),
    ],
)
def test_what_a_real_robot_cannot_do_is_refused_with_its_reason(
    tmp_path: Path, section: str, keys: dict[str, Any], said: str
) -> None:
    async def test() -> None:
        write_cells(tmp_path, FINGERS, FINGERS)
        file = tmp_path / "here.yaml"
        written = yaml.safe_load(file.read_text())
        written["robots"]["g60"][section] |= keys
        file.write_text(yaml.safe_dump(written))
        async with alive(str(file), "g60", at=NOBODY, real=True) as here:
            operator = Operator(here, "g60")
            operator.on("set_mode", mode="real")
            assert said in operator.refusal("start_pick_place")

    run(test)
