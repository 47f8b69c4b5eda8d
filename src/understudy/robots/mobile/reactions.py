"""Expected reactions to the faults of mobile robots, and a conversation of a backend."""

from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from understudy.ports import CONFIRMED, WireMessage
from understudy.ports.decoder import json_object
from understudy.ports.exploration import Exploration, Explored, Look, Passed, Say
from understudy.ports.fault_reactions import (
    ENGINE_FAILED,
    ENGINE_RUNS,
    STANDS,
    NotPossibleError,
    Reaction,
    Reactions,
    Seen,
    Talk,
    Trial,
    robot_stands,
    status,
)
from understudy.robots.mobile.runtime.messages import RobotStatus
from understudy.units import NS_PER_SECOND

FACE = "fleet"
STOPS_S = 2.0
"""A robot that turns in place stands within this time."""
LIMIT_INPUT = "lift_low"
SENSOR = "lidar"


def command(robot: str, number: int, kind: str, **parameters: Any) -> WireMessage:
    """A command.request of a backend."""
    body = {
        "messageId": f"atlas-{robot}-{number}",
        "robotId": robot,
        "payload": {"commandType": kind, "parameters": parameters},
    }
    address = f"robot.{robot}.command.request"
    return WireMessage(address, msgspec.json.encode(body), f"$JS.ACK.{number}")


def say(trial: Trial, kind: str, **parameters: Any) -> None:
    """Sends a command to the robot of the trial."""
    number = trial.notes["commands"] = trial.notes.get("commands", 0) + 1
    trial.client(FACE).say(command(trial.robot, number, kind, **parameters))


def connected(trial: Trial) -> None:
    """the backend is connected, the robot waits"""
    trial.client(FACE)
    trial.advance(0.5)


def turning(trial: Trial) -> None:
    """the robot turns in place by a command"""
    connected(trial)
    say(trial, "MOVE_VELOCITY", linear=0.0, angular=0.4)
    trial.advance(1.0)
    if robot_stands(trial):
        raise NotPossibleError(f"{trial.robot} does not turn")


def pressed(trial: Trial) -> None:
    """in emergency stop"""
    connected(trial)
    trial.part.inject("emergency_stop", {}, trial.now)
    trial.advance(0.5)


def blind(trial: Trial) -> None:
    """the lidar is not connected"""
    connected(trial)
    number = float(_number(trial, "device_disconnected", SENSOR))
    trial.part.inject("device_disconnected", {"device": number}, trial.now)
    trial.advance(0.5)


def limit_forced(trial: Trial) -> None:
    """a limit input is forced off, against its axis"""
    connected(trial)
    number = float(_number(trial, "input_off", LIMIT_INPUT))
    trial.part.inject("input_off", {"io": number}, trial.now)
    trial.advance(0.5)


def _number(trial: Trial, fault: str, name: str) -> int:
    number = trial.part.fault_pin(fault, name)
    if not isinstance(number, int):
        raise NotPossibleError(number.reason)
    return number


def turn(trial: Trial) -> None:
    """the backend commands a turn"""
    say(trial, "MOVE_VELOCITY", linear=0.0, angular=0.4)


def _said(trial: Trial, kind: str, **fields: Any) -> bool:
    """Whether a message of this kind with these values was sent since the injection."""
    address = f"robot.{trial.robot}.{kind}"
    for at, data in trial.client(FACE).heard:
        if isinstance(data, WireMessage) and data.address == address and at >= trial.injected_at:
            payload = msgspec.json.decode(data.payload)["payload"]
            if _has(payload, fields):
                return True
    return False


def _has(payload: Any, fields: Mapping[str, Any]) -> bool:
    return all(payload.get(key) == value for key, value in fields.items())


def reports(kind: str, **fields: Any) -> Seen:
    words = ", ".join(f"{key} {value}" for key, value in fields.items())
    return Seen(f"{kind} with {words}", lambda trial: _said(trial, kind, **fields))


ESTOP = reports("state", safetyStopReason="ESTOP")
FAILED = reports("command.ack", status="FAILED")
WAITS = reports("state", safetyStopActive=False)
REACTIONS: Reactions = {
    "emergency_stop": Reaction(turning, (ESTOP, FAILED, ENGINE_FAILED, STANDS), within_s=STOPS_S),
    "emergency_release": Reaction(pressed, (ENGINE_RUNS, WAITS), within_s=1.0),
    "motor_fault": Reaction(
        turning,
        (reports("state", status="ERROR"), FAILED, ENGINE_FAILED, STANDS),
        within_s=STOPS_S,
        parameters={"motor": 0.0},
    ),
    "drive_fault": Reaction(
        turning, (reports("state", status="ERROR"), FAILED, ENGINE_FAILED, STANDS), within_s=STOPS_S
    ),
    "device_disconnected": Reaction(
        connected,
        (ENGINE_FAILED, reports("state", safetyStopReason="INTERNAL_FAULT")),
        within_s=1.0,
        parameters={"device": SENSOR},
    ),
    "device_connected": Reaction(
        blind, (ENGINE_RUNS, WAITS), within_s=2.0, parameters={"device": SENSOR}
    ),
    "input_on": Reaction(
        turning, (ESTOP, ENGINE_FAILED, STANDS), within_s=STOPS_S, parameters={"io": 0.0}
    ),
    "input_off": Reaction(
        pressed, (status("estop_pressed", False), ENGINE_RUNS), parameters={"io": 0.0}
    ),
    "input_released": Reaction(limit_forced, (ENGINE_RUNS,), parameters={"io": LIMIT_INPUT}),
}


# ── the broker ──

AGAIN_S = 20.0
"""Time after which a delivery comes again; its length changes nothing: the robot remembers a number
of ids, not a time."""


def commanded(trial: Trial) -> None:
    """the backend sends a command"""
    say(trial, "SET_SPEED_LIMIT", maxSpeedMps=0.5)
    trial.advance(6.0)


def commanded_once(trial: Trial) -> None:
    """the backend sends a command, and gets it again from the broker"""
    say(trial, "SET_SPEED_LIMIT", maxSpeedMps=0.5)
    trial.advance(AGAIN_S + 2.0)


def _acks(trial: Trial) -> list[tuple[str, str]]:
    """Id and status of the acknowledgements of commands."""
    address = f"robot.{trial.robot}.command.ack"
    found = []
    for _, data in trial.client(FACE).heard:
        if isinstance(data, WireMessage) and data.address == address:
            body = msgspec.json.decode(data.payload)
            found.append((body["messageId"], body["payload"]["status"]))
    return found


def _sent_again_with_same_id(trial: Trial) -> bool:
    acks = _acks(trial)
    statuses = [status for _, status in dict.fromkeys(acks)]
    return len(acks) > len(set(acks)) and statuses == ["ACKED", "RUNNING", "DONE"]


def _carried_out_once(trial: Trial) -> bool:
    delivered = [d for _, d in trial.client(FACE).heard if _payload_of(d) == b"+ACK"]
    return len(delivered) == 2 and [s for _, s in _acks(trial)] == ["ACKED", "RUNNING", "DONE"]


def _payload_of(data: Any) -> bytes:
    return data.payload if isinstance(data, WireMessage) else b""


FACE_REACTIONS: Reactions = {
    "confirmation_delay": Reaction(
        connected,
        (
            Seen(
                "a message is sent again with its id; the command is carried out once",
                _sent_again_with_same_id,
            ),
        ),
        within_s=5.0,
        parameters={"delay_ms": 4000.0},
        then=commanded,
    ),
    "delivery_repeated": Reaction(
        connected,
        (
            Seen(
                "both deliveries are acknowledged; the command is carried out once",
                _carried_out_once,
            ),
        ),
        parameters={"after_s": AGAIN_S},
        then=commanded_once,
    ),
}
TALKS = {
    "": Talk(lambda trial, number: command(trial.robot, number, "STOP"), pause_s=1.0, repeats=False)
}


# ── explorations ────────────────────────────────────────────────────────────────────────────────

ENDS = ("REJECTED", "DONE", "FAILED", "CANCELED")
NEVER = 1 << 62
SETTLES_S = 30.0
"""A robot without a command has reported all ends after this time with its backend."""


def _says(kind: str, **parameters: Any) -> Say:
    return lambda robot, number: command(robot, number, kind, **parameters)


def ended_once(run: Explored, endpoint: str) -> Look | None:
    """every command is acknowledged and ends once

    An end counts when the broker has confirmed it: one that was sent over a connection that was
    lost has not arrived.
    """
    if run.disturbed(endpoint):
        return None
    counted, connected_at = 0, 0
    asked: dict[str, tuple[str, str, int]] = {}
    """Id of a command → its robot, its reply address, and when it was asked for."""
    acknowledged: dict[str, int] = {}
    ends: dict[str, set[str]] = {}
    stored: set[str] = set()
    """Ids of messages that the broker has confirmed."""

    def take(event: Passed) -> None:
        nonlocal connected_at
        if event.kind == "!":
            connected_at = event.at if event.data == b"open" else NEVER
            return
        body = json_object(event.data)
        address = event.address[0] if event.address else ""
        if event.address and address == CONFIRMED:
            stored.add(event.address[1])
        elif event.kind == ">" and address.endswith(".command.request") and "messageId" in body:
            reply_to = event.address[1] if event.address else ""
            asked[body["messageId"]] = body["robotId"], reply_to, event.at
        elif event.data == b"+ACK":
            acknowledged[address] = acknowledged.get(address, 0) + 1
        elif event.kind == "<" and address.endswith(".command.ack"):
            cause = body.get("correlationId", "")
            if body["payload"]["status"] in ENDS and cause in asked:
                ends.setdefault(cause, set()).add(body["messageId"])

    def look() -> str:
        nonlocal counted
        events, counted = run.passed[counted:], len(run.passed)
        for event in events:
            if event.endpoint == endpoint:
                take(event)
        for name, ids in ends.items():
            if len(ids) > 1:
                return f"{name} has ended {len(ids)} times"
        settled = run.now - SETTLES_S * NS_PER_SECOND
        for reply_to, times in acknowledged.items():
            if times > 1:
                return f"{reply_to} was acknowledged {times} times"
        for name, (robot, reply_to, at) in asked.items() if connected_at < settled else ():
            part: Any = run.components[robot]
            if at >= settled:
                continue
            if not ends.get(name, set()) & stored and part.status(run.now).command is None:
                return f"{name} of {robot} has no end"
            if reply_to not in acknowledged and at > connected_at:
                return f"{name} of {robot} was not acknowledged"
        return ""

    return look


EXPLORED = Exploration(reach={"state": get_args(RobotStatus)})
FACE_EXPLORED = Exploration(
    says=(
        *(_says("MOVE_VELOCITY", linear=v, angular=w) for v, w in ((0.3, 0.0), (0.0, 0.4))),
        *(_says("MOVE_TO_POSE", x=x, y=y) for x, y in ((1.0, 1.0), (2.0, 0.5), (0.5, 0.5))),
        *(_says("STOP"), _says("FLY"), _says("MOVE_TO_POSE", x="here")),
    ),
    invariants=(ended_once,),
)
