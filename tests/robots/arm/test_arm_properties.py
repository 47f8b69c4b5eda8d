"""Any commands at any time: limits hold; time slices and snapshots are invisible."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.robots.arm.bench import READY, arm

from understudy import VirtualController
from understudy.ports import Snapshot
from understudy.ports.state import load, saved
from understudy.units import DEG, nanoseconds

VELOCITY = np.array([120, 120, 120, 190, 190, 250]) * DEG
ACCELERATION = np.array([500, 500, 500, 800, 800, 1000]) * DEG
LOWER = np.array([-170, -120, -80, -185, -120, -360]) * DEG
UPPER = np.array([170, 60, 165, 185, 120, 360]) * DEG

Deed = tuple[str, tuple[Any, ...]]
"""A call: the name of a method, and its arguments."""
Script = list[tuple[float, Deed]]
"""Seconds to wait, then the call."""


def whole(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


JOINTS = st.builds(
    lambda words: " ".join(f"{letter}{value}" for letter, value in sorted(words.items())),
    st.dictionaries(st.sampled_from("ABCUVW"), whole(-60, 60), min_size=1, max_size=4),
)
LINES = st.one_of(
    st.builds("G1 {} F{}".format, JOINTS, whole(300, 9000)),
    st.builds("G0 {}".format, JOINTS),
    st.builds("G4 P0.{}".format, whole(0, 9)),
    st.builds("M62 P{}".format, whole(2, 5)),
    st.builds("M63 P{}".format, whole(2, 5)),
    st.builds("M64 P{}".format, whole(6, 9)),
    st.builds("M66 P1 L{} Q0.3".format, whole(0, 4)),
    st.builds("M68 E0 Q{}".format, whole(0, 10)),
    st.sampled_from(["M0", "M3", "M5", "M7", "G61", "G64", "G28", "M2", ""]),
    st.builds("M429 G91 G1 X{} Y{} C{} F6000".format, whole(-40, 40), whole(-90, 90), whole(-9, 9)),
    st.sampled_from(["G0 A300", "G0 X400 Z500", "G90", "M428", "G17 G2 I20 F6000"]),
)
DEEDS: st.SearchStrategy[Deed] = st.one_of(
    st.tuples(st.just("send_gcode"), st.tuples(LINES)),
    st.tuples(st.just("send_gcode"), st.tuples(LINES)),
    st.tuples(st.just("send_gcode"), st.tuples(LINES)),
    st.tuples(st.just("jog"), st.tuples(whole(0, 5), st.floats(-3, 3))),
    st.tuples(st.just("override_feed"), st.tuples(whole(10, 200))),
    st.tuples(st.just("override_rapid"), st.tuples(whole(5, 100))),
    st.tuples(st.just("set_digital_input"), st.tuples(st.just(1), st.booleans())),
    st.tuples(
        st.sampled_from(
            ["hold", "cycle_start", "cycle_start", "stop", "stop_jog", "home", "emergency_stop"]
        ),
        st.just(()),
    ),
    st.tuples(st.sampled_from(["reset", "enable", "disable", "enable"]), st.just(())),
)
SCRIPTS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.0004, 0.01, 0.1, 0.25, 0.7]), DEEDS), min_size=1, max_size=14
)
PROFILES = st.sampled_from(["trapezoid", "jerk_limited"])
few = settings(max_examples=25, deadline=None)


def done(controller: VirtualController, deed: Deed) -> object:
    name, arguments = deed
    return getattr(controller, name)(*arguments)


def readings(controller: VirtualController) -> tuple[object, ...]:
    return (
        controller.joint_state(),
        controller.status(),
        controller.digital_io(),
        controller.analog_io(),
        controller.input_result(),
        controller.is_homed(),
    )


# ── limits ──────────────────────────────────────────────────────────────────────────────────────


@given(script=SCRIPTS, profile=PROFILES)
@few
def test_limits_hold_for_any_commands(script: Script, profile: str) -> None:
    """Read a thousand times a second."""
    rows: list[tuple[tuple[float, ...], ...]] = []
    controller = arm(start_deg=READY, profile=profile)
    controller.on_joint_state(
        lambda state: rows.append((state.positions, state.velocities, state.accelerations))
    )
    for pause, deed in script:
        controller.advance(pause)
        done(controller, deed)
    controller.stop()
    controller.advance(1.0)
    q, v, a = np.moveaxis(np.array(rows), 1, 0)
    assert (np.abs(v) <= VELOCITY * (1 + 1e-9)).all()
    assert (np.abs(a) <= ACCELERATION * (1 + 1e-6)).all()
    assert (q >= LOWER - 1e-9).all()
    assert (q <= UPPER + 1e-9).all()
    assert not v[-1].any(), "and after a stop it stands"


@given(targets=st.lists(JOINTS, min_size=1, max_size=8), profile=PROFILES)
@few
def test_a_program_ends_exactly_on_its_target(targets: list[str], profile: str) -> None:
    controller = arm(profile=profile)
    wanted = dict.fromkeys("ABCUVW", 0.0)
    for target in targets:
        assert controller.send_gcode(f"G1 {target} F6000") is None
        wanted |= {word[0]: float(word[1:]) for word in target.split()}
    controller.run_until_idle()
    state = controller.joint_state()
    assert state.positions == tuple(value * DEG for value in wanted.values())
    assert not any(state.velocities)


# ── slices of time ──────────────────────────────────────────────────────────────────────────────


def performed(
    script: Script, profile: str, pass_time: Callable[[VirtualController, float], None]
) -> list[object]:
    """All readings and callbacks of a script."""
    log: list[object] = []
    controller = arm(start_deg=READY, profile=profile, simulation={"update_rate_hz": 50})
    controller.on_status(lambda status: log.append(("status", status)))
    controller.on_joint_state(lambda state: log.append(("joints", state)))
    for pause, deed in [*script, (1.0, ("status", ()))]:
        pass_time(controller, pause)
        log.append((done(controller, deed), *readings(controller)))
    return log


def in_slices(controller: VirtualController, duration: float) -> None:
    """Steps of 7 ms and the rest, with readings in between."""
    end = nanoseconds(controller.simulation_time()) + nanoseconds(duration)
    while (left := end - nanoseconds(controller.simulation_time())) > 0:
        controller.advance(min(0.007, left / 1e9))
        readings(controller)


@given(script=SCRIPTS, profile=PROFILES)
@few
def test_time_slices_change_nothing(script: Script, profile: str) -> None:
    whole_pauses = performed(script, profile, VirtualController.advance)
    assert performed(script, profile, in_slices) == whole_pauses


# ── snapshots ───────────────────────────────────────────────────────────────────────────────────


def through_json(snapshot: Snapshot) -> Snapshot:
    """The state written to JSON and read back."""
    text = json.dumps(msgspec.to_builtins(snapshot), allow_nan=True)
    plain = msgspec.json.decode(msgspec.json.encode(json.loads(text)))
    return msgspec.convert(plain, Snapshot)


@given(script=SCRIPTS, cut=st.integers(0, 13), profile=PROFILES)
@few
def test_a_snapshot_is_invisible(script: Script, cut: int, profile: str) -> None:
    """Run, restore into the same and into another controller, run again: the same."""
    log: list[object] = []
    first = arm(start_deg=READY, profile=profile, simulation={"update_rate_hz": 50})
    first.on_status(lambda status: log.append(("status", status)))
    first.on_joint_state(lambda state: log.append(("joints", state)))
    for pause, deed in script[:cut]:
        first.advance(pause)
        done(first, deed)
    moment = through_json(first.snapshot())

    def go_on(controller: VirtualController) -> list[object]:
        log.clear()
        for pause, deed in [*script[cut:], (0.4, ("status", ()))]:
            controller.advance(pause)
            log.append((done(controller, deed), *readings(controller)))
        return list(log)

    as_it_went = go_on(first)
    first.restore(moment)
    assert go_on(first) == as_it_went
    another = arm(start_deg=READY, profile=profile, simulation={"update_rate_hz": 50})
    another.on_status(lambda status: log.append(("status", status)))
    another.on_joint_state(lambda state: log.append(("joints", state)))
    another.restore(moment)
    assert go_on(another) == as_it_went


@given(script=SCRIPTS, profile=PROFILES)
@settings(max_examples=15, deadline=None)
def test_a_snapshot_at_every_wake_is_invisible(script: Script, profile: str) -> None:
    def restored_at_every_wake(controller: VirtualController, duration: float) -> None:
        end = nanoseconds(controller.simulation_time()) + nanoseconds(duration)
        cell = controller._cell
        while (at := cell.next_wake()) is not None and at <= end:
            cell.advance(at)
            controller.restore(through_json(controller.snapshot()))
        cell.advance(end)

    once = performed(script, profile, VirtualController.advance)
    assert performed(script, profile, restored_at_every_wake) == once


def test_a_snapshot_does_not_change_later() -> None:
    """Later actions of the controller do not change it."""
    controller = arm()
    for line in ("G1 A10 F600", "M62 P1", "G1 A20", "G4 P1", "M62 P2"):
        assert controller.send_gcode(line) is None
    controller.advance(0.5)
    moment = saved(controller._inner)
    text = msgspec.json.encode(moment)
    controller.run_until_idle()
    assert msgspec.json.encode(moment) == text
    load(controller._inner, moment)
    controller.run_until_idle()
    assert msgspec.json.encode(moment) == text
