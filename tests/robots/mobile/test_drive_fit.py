"""Mobile robots with hidden limits of their drives are recorded on virtual time, and fitted."""

import json
from pathlib import Path
from random import Random

import pytest
from tests.offline.fit.noisy_link import late

from understudy.app.build import build_cell
from understudy.config import CellConfig, load_config
from understudy.offline.fit.estimate import fit
from understudy.ports import WireMessage
from understudy.registry import module_of
from understudy.wire.chat import Chat
from understudy.wire.exchange import InProcessCell

CELL = """robots:
  amr-1: {kind: mobile, file: amr.json, pose: [2, 4, 0]}
"""
WIDEST = 0.02


def robot_file(limits: dict[str, float]) -> bytes:
    """The shipped robot with other limits of its drives."""
    file = json.loads(load_config("mobile_robot").read_file("amr.json"))
    for motor in file["motors"]:
        if motor["role"] == "DRIVE":
            for name, value in limits.items():
                motor["limits"][name]["value"] = value
    return json.dumps(file).encode()


def cell(folder: Path, name: str, limits: dict[str, float]) -> CellConfig:
    place = folder / name
    place.mkdir(exist_ok=True)
    (place / "amr.json").write_bytes(robot_file(limits))
    (place / "cell.yaml").write_text(CELL.replace("amr.json", f"{name}.json"))
    (place / f"{name}.json").write_bytes(robot_file(limits))
    return load_config(str(place / "cell.yaml"))


def recording(config: CellConfig, rng: Random) -> tuple[Chat, float]:
    """A client drives a robot to and fro; and the mean delay of an answer in ms, with the half
    tick until the robot reads a command."""
    running = InProcessCell(build_cell(config))
    client = running.connect()

    def command(kind: str, **parameters: float) -> None:
        count[0] += 1
        payload = {"commandId": f"c{count[0]}", "commandType": kind, "parameters": parameters}
        number = f"00000000-0000-4000-8000-{count[0]:012d}"
        body = {"payloadVersion": 1, "messageId": number, "robotId": "amr-1", "payload": payload}
        body["ts"] = "2026-01-01T00:00:00.000Z"
        text = json.dumps(body).encode()
        client.say(WireMessage("robot.amr-1.command.request", text, ""))

    def wait(seconds_: float) -> None:
        for _ in range(round(seconds_ * 10)):
            running.advance(0.1)
            client.confirm()
        running.advance(rng.uniform(0.0, 0.05))

    count = [0]
    wait(1.0)
    for number in range(6):
        sign = 1.0 if number % 2 == 0 else -1.0
        command("MOVE_VELOCITY", linear=sign * (5.0, rng.uniform(0.4, 0.7))[number // 2 % 2])
        wait(4.0)
        command("STOP")
        wait(3.0)
    delay = rng.uniform(0.003, 0.01)
    return late(running.transcript, delay_s=delay, jitter_s=0.0005, rng=rng), delay


def trial(seed: int, folder: Path) -> list[str]:
    """What is wrong with the fit of hidden limits."""
    rng = Random(seed)
    limits = {
        "maxSpeed": round(rng.uniform(0.8, 1.6), 3),
        "maxAcceleration": round(rng.uniform(0.5, 1.2), 3),
        "maxDeceleration": round(rng.uniform(0.6, 1.5), 3),
    }
    chat, delay = recording(cell(folder, "true", limits), rng)
    known = cell(folder, "known", {"maxSpeed": 1.2, "maxAcceleration": 0.8, "maxDeceleration": 1.0})
    found = fit(module_of("robots", "mobile").recorded(known, "amr-1", chat))
    by_key = {str(each.keys[-1]): each for each in found.visible if each.keys}
    wrong = [f"{key} is not visible" for key in limits if key not in by_key]
    for key in limits.keys() & by_key.keys():
        each = by_key[key]
        if not each.low <= limits[key] <= each.high:
            wrong.append(f"{key}: {limits[key]} is outside {each.low}…{each.high}")
        if each.width > WIDEST:
            wrong.append(f"{key}: the interval is {each.width:.1%} wide")
    acks = next(each for each in found.visible if "acknowledgements" in each.meaning)
    tick_ms = 20.0
    if not 2e3 * delay <= acks.value <= 2e3 * delay + tick_ms:
        wrong.append(f"acks take {acks.value} ms, not {2e3 * delay} ms and a part of a tick")
    period = next(each for each in found.visible if each.meaning == "period of states")
    if not 99.0 <= period.value <= 101.0:
        wrong.append(f"a state every {period.value} ms, not every 100 ms")
    return wrong


@pytest.mark.parametrize("count", [3, pytest.param(100, marks=pytest.mark.soak)])
def test_the_intervals_contain_hidden_limits(count: int, tmp_path: Path) -> None:
    failed = {seed: wrong for seed in range(count) if (wrong := trial(seed, tmp_path))}
    assert len(failed) <= count // 20, failed


def test_a_limit_that_no_motion_reached_is_not_visible(tmp_path: Path) -> None:
    limits = {"maxSpeed": 6.0, "maxAcceleration": 2.5, "maxDeceleration": 2.5}
    chat, _ = recording(cell(tmp_path, "true", limits), Random(1))
    found = fit(
        module_of("robots", "mobile").recorded(cell(tmp_path, "true", limits), "amr-1", chat)
    )
    assert {str(each.keys[-1]) for each in found.estimates if each.keys and not each.visible} == {
        "maxSpeed"
    }
