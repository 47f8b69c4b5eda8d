"""The hand-eye calibration of a REAL arm: a second cell behind sockets is arm and camera."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import yaml
from tests.jobs.hand_eye.bench import TRUE_CAMERA
from tests.operator.real_pair import Operator, alive, run
from tests.vision.served import served
from typer.testing import CliRunner

from understudy import cli
from understudy.app.ready_file import ReadyFile
from understudy.config.files import find_cell
from understudy.space.transform import angle_between
from understudy.units import DEG, MM
from understudy.vision.config import read_calibration
from understudy.vision.process import setup_of_camera
from understudy.wire.dial import Destination
from understudy.wire.zmq_request import AskedProcess

pytestmark = pytest.mark.usefixtures("patient_connection")
THERE_RATE = 30.0
"""The cell that stands for the real arm is this much faster, so that the test is."""


def write_cells(folder: Path, **vision: Any) -> tuple[str, str]:
    """The shipped cell `calibration` as the real one, whose camera does not know the robot, and as
    the one of the operator, who knows the camera roughly."""
    there = yaml.safe_load(find_cell("calibration")[1])
    there["robots"]["g60"]["faces"] = {"grblhal": {"port": 0}, "camera": {"port": 0}}
    there["robots"]["g60"]["camera"]["flange"] = False
    here = yaml.safe_load(find_cell("calibration")[1])
    robot = here["robots"]["g60"]
    robot["faces"] = {}
    robot["vision"] |= vision
    robot["hand_eye"] |= {
        "poses": 10, "check_poses": 1, "settle_ms": 10, "timeout_ms": 60_000,
        "robot_error_mm": 0.005, "robot_error_deg": 0.0007,
    }  # fmt: skip
    for name, cell in (("there", there), ("here", here)):
        cell.pop("hmi")
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(cell))
    return str(folder / "there.yaml"), str(folder / "here.yaml")


@contextlib.asynccontextmanager
async def real_arm(folder: Path, **vision: Any) -> AsyncIterator[tuple[Operator, Operator]]:
    """The cell of the real arm, and the operator of the other one, connected to it."""
    there_file, here_file = write_cells(folder, **vision)
    async with alive(there_file, "g60", rate=THERE_RATE) as there:
        port = urlsplit(there.endpoints["g60.grblhal"]).port or 0
        async with alive(here_file, "g60", at=Destination("127.0.0.1", port), real=True) as here:
            operator = Operator(here, "g60")
            operator.on("set_mode", mode="real")
            await operator.connected()
            yield Operator(there, "g60"), operator


async def finished(operator: Operator) -> dict[str, Any]:
    while (status := operator.on("hand_eye_status"))["running"]:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return dict(status)


def test_the_camera_of_a_real_arm_is_found(tmp_path: Path) -> None:
    async def test() -> None:
        async with real_arm(tmp_path, camera="opencv:0") as (there, operator):
            camera = f"understudy://{urlsplit(there.live.endpoints['g60.camera']).netloc}/g60"
            with served(setup_of_camera(camera)) as address:
                operator.live.ask("g60.vision", AskedProcess(address, os.getpid))
                assert "not enabled" in operator.refusal("hand_eye_start")
                operator.on("enable")
                assert operator.on("hand_eye_start")["running"]
                assert "is running" in operator.refusal("move_to", robot="g60", joints_deg=[0] * 6)
                assert operator.refusal("set_mode", robot="g60", mode="simulation")
                status = await finished(operator)
                assert status["state"] == "DONE", status
                text = operator.on("hand_eye_text")["text"]
                operator.on("hand_eye_start")
                operator.on("stop")
                assert operator.on("hand_eye_status")["state"] == "IDLE"
                await operator.at_rest()
                operator.on("hand_eye_start")
                there.on("emergency_stop")
                assert (await finished(operator))["state"] == "ERROR"
        found = read_calibration(text, "calibration.yaml").place()
        missed = float(np.linalg.norm(found[:3, 3] - TRUE_CAMERA[:3, 3])) / MM
        turned = angle_between(found, TRUE_CAMERA) / DEG
        assert missed < 0.1
        assert turned < 0.02

    run(test)


def test_a_simulated_camera_does_not_calibrate_a_real_arm(tmp_path: Path) -> None:
    """The vision process that the cell starts would see the simulated sibling."""

    async def test() -> None:
        nobody = Destination("127.0.0.1", 9)
        async with alive(write_cells(tmp_path)[1], "g60", at=nobody, real=True) as here:
            operator = Operator(here, "g60")
            operator.on("set_mode", mode="real")
            for command in ("hand_eye_start", "hand_eye_capture"):
                assert "its camera is simulated: name" in operator.refusal(command)
            assert operator.on("hand_eye_status")["state"] == "IDLE"
            file = tmp_path / "ready.json"
            ReadyFile(file, here.secret).write("here", 1.0, dict(here.endpoints))
            words = ["calibrate", "hand-eye", "--ready-file", str(file)]
            done = await asyncio.to_thread(CliRunner().invoke, cli.app, words)
            assert done.exit_code == 1
            assert "g60 is REAL and would move by itself: add --real" in done.output

    run(test)
