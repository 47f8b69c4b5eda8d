"""A controller's queue: appended to while running, held, resumed, stopped, overridden."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.motion.plain_motion import plain_braking, plain_stream
from tests.motion.programs import AXES, Program, grid, programs

from understudy.errors import ConfigError
from understudy.motion import stream as stream_module
from understudy.motion.lines import lines
from understudy.motion.path import Limits, Path, dwell_path
from understudy.motion.plan import Plan
from understudy.motion.profile import Profile, brake
from understudy.motion.stream import FIRMWARE_COMMIT, Stream, planned

LIMITS = Limits.of([100.0] * 3, [500.0] * 3, [1e4] * 3)
PROFILES: list[Profile] = ["trapezoid", "jerk_limited"]
ORIGIN = np.zeros(AXES)


def straight(to: float = 100.0, feed: float = 50.0) -> Path:
    return lines(ORIGIN, [[to, 0.0, 0.0]], LIMITS, feed=feed)


def running(program: Program, profile: Profile = "trapezoid", **options: Any) -> Stream:
    stream = Stream(ORIGIN, program.limits, profile=profile, **options)
    stream.append(program.path(), 0.0)
    return stream


def off_the_path(points: np.ndarray, path: Path) -> float:
    """The greatest distance of any point from the nearest line of the path."""
    a, d = path.shape[:, 0], path.end - path.shape[:, 0]
    share = np.clip(((points[:, None] - a) * d).sum(-1) / (d * d).sum(-1), 0.0, 1.0)
    return float(np.linalg.norm(points[:, None] - a - share[..., None] * d, axis=-1).min(1).max())


def assert_lawful(plan: Plan, limits: Limits) -> None:
    """Limits hold at every sample, and velocity is the derivative of position."""
    found = plan.sample(grid(plan.ends, 800))
    assert (np.abs(found.velocity) <= limits.velocity * (1 + 1e-6) + 1e-9).all()
    assert (np.abs(found.acceleration) <= limits.acceleration * (1 + 1e-6)).all()
    edges = plan.law.begins
    middle = 0.5 * (edges[1:] + edges[:-1])
    step = 1e-7
    slope = (plan.positions(middle + step) - plan.positions(middle - step)) / (2 * step)
    long = np.diff(edges) > 4 * step
    assert np.abs(slope - plan.sample(middle).velocity)[long].max(initial=0.0) < 1e-4


# ── appending ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("profile", PROFILES)
@given(program=programs(jerk=True))
def test_appending_at_once_or_one_by_one_gives_the_same_plan(
    program: Program, profile: Profile
) -> None:
    whole = running(program, profile)
    pieces = Stream(ORIGIN, program.limits, profile=profile)
    for k in range(len(program.targets)):
        pieces.append(program.path(k, k + 1), 0.0, deviation=program.deviation)
        if k % 3 == 0:
            assert pieces.plan.begins == 0.0
    times = grid(whole.plan.ends)
    assert pieces.plan.ends == pytest.approx(whole.plan.ends, rel=1e-9)
    assert pieces.plan.positions(times) == pytest.approx(whole.plan.positions(times), abs=1e-6)


@given(programs(), st.sampled_from([2, 3, 10]))
def test_a_small_window_gives_the_same_plan_however_blocks_are_appended(
    program: Program, window: int
) -> None:
    path = program.path()
    if not len(path):
        return
    stream = Stream(ORIGIN, program.limits, window=window)
    for k in range(len(program.targets)):
        stream.append(program.path(k, k + 1), 0.0, deviation=program.deviation)
        assert stream.plan.begins == 0.0
    assert stream.plan.ends == pytest.approx(planned(path, window=window).ends, rel=1e-9)


@given(
    programs(),
    st.lists(st.floats(0.0, 0.2), min_size=30, max_size=30),
    st.sampled_from([2, 5, 100]),
)
def test_blocks_appended_while_running_are_planned_as_in_the_firmware(
    program: Program, gaps: list[float], window: int
) -> None:
    path = program.path()
    if not len(path):
        return
    stream = Stream(ORIGIN, program.limits, window=window)
    arrivals = np.cumsum([0.0, *gaps])[: len(path)]
    for k, now in enumerate(arrivals):
        line = lines(
            stream.end,
            path.end[k],
            program.limits,
            feed=path.feed[k],
            rapid=path.rapid[k],
            line=k,
        )
        stream.append(line, now, deviation=program.deviation)
    begins = stream.plan.lines()[1]
    ends = plain_stream(path, arrivals.tolist(), window)
    assert stream.plan.ends == pytest.approx(ends[-1], abs=1e-6)
    assert (begins[1:] >= np.array(ends[:-1]) - 1e-6).all()


def test_a_block_appended_in_time_is_entered_without_a_stop() -> None:
    """While nothing follows, a block is planned to end at rest; braking begins at 1.9 s."""
    stream = Stream(ORIGIN, LIMITS)
    stream.append(straight(), 0.0)
    assert stream.plan.ends == pytest.approx(2.1)
    stream.append(lines(stream.end, [[200.0, 0, 0]], LIMITS, feed=50.0), 1.9)
    assert stream.plan.ends == pytest.approx(4.1)
    assert stream.plan.speed(2.05) == pytest.approx(50.0)


def test_a_block_appended_while_braking_ends_the_braking() -> None:
    stream = Stream(ORIGIN, LIMITS)
    stream.append(straight(), 0.0)
    stream.append(lines(stream.end, [[200.0, 0, 0]], LIMITS, feed=50.0), 2.05)
    plan = stream.plan
    assert plan.speed(2.05) == pytest.approx(25.0)
    assert plan.speed(2.1) == pytest.approx(50.0)
    # 25 mm/s are lost and won back at 500 mm/s², at 25 mm/s less than the cruise on average.
    assert plan.ends == pytest.approx(4.1 + 2 * 0.05 * 12.5 / 50.0)


def test_committed_motion_cannot_be_changed() -> None:
    """With 90 ms committed a block at 2.05 s comes too late: the stop at 2.1 s is already sent."""
    stream = Stream(ORIGIN, LIMITS, commit=FIRMWARE_COMMIT)
    stream.append(straight(), 0.0)
    stream.append(lines(stream.end, [[200.0, 0, 0]], LIMITS, feed=50.0), 2.05)
    assert stream.plan.speed(2.1) == 0.0
    assert stream.plan.ends == pytest.approx(4.2)


def test_an_idle_stream_starts_when_a_line_is_appended() -> None:
    stream = Stream(ORIGIN, LIMITS, commit=FIRMWARE_COMMIT)
    stream.append(straight(), 1.0)
    stream.append(lines(stream.end, [[200.0, 0, 0]], LIMITS, feed=50.0, line=1), 10.0)
    plan = stream.plan
    assert plan.at(5.0).position.tolist() == [100.0, 0.0, 0.0]
    assert plan.line_at(5.0) is None
    assert plan.lines()[1] == pytest.approx([1.0, 10.0])
    assert plan.ends == pytest.approx(12.1)


def test_used_blocks_count_down() -> None:
    stream = Stream(ORIGIN, LIMITS)
    stream.append(lines(ORIGIN, [[10.0, 0, 0], [10.0, 10.0, 0]], LIMITS, feed=50.0), 0.0)
    half = stream.plan.ends / 2
    assert [stream.used(t) for t in (0.0, half + 0.01, 2 * half)] == [2, 1, 0]


# ── hold, resume, stop ──────────────────────────────────────────────────────────────────────────

COMMANDS = st.lists(
    st.tuples(st.sampled_from(["hold", "resume", "slower", "faster"]), st.floats(0.0, 0.3)),
    max_size=8,
)


@pytest.mark.parametrize("profile", PROFILES)
@given(program=programs(jerk=True), commands=COMMANDS, commit=st.sampled_from([0.0, 0.09]))
def test_hold_resume_and_override_keep_the_path(
    program: Program,
    commands: list[tuple[str, float]],
    commit: float,
    profile: Profile,
) -> None:
    path = program.path()
    if not len(path):
        return
    stream, now = running(program, profile, commit=commit), 0.0
    for command, wait in commands:
        now += wait
        if command in ("hold", "resume"):
            getattr(stream, command)(now)
        else:
            stream.override(now, feed=0.2 if command == "slower" else 2.0)
    stream.resume(now + 1.0)
    plan = stream.plan
    assert plan.at(plan.ends).position.tolist() == path.end[-1].tolist()
    assert off_the_path(plan.positions(grid(plan.ends)), path) < 1e-9
    assert_lawful(plan, program.limits)


@pytest.mark.parametrize("profile", PROFILES)
@given(program=programs(jerk=True), share=st.floats(0.0, 1.0))
def test_a_hold_is_never_faster_than_the_plan_was_there(
    program: Program, share: float, profile: Profile
) -> None:
    path = program.path()
    if not len(path):
        return
    stream = running(program, profile)
    before = stream.plan
    stands = stream.hold(share * before.ends)
    held = stream.plan
    assert stands == held.ends <= before.ends + 1e-6
    braking = np.linspace(share * before.ends, stands, 400)  # a held motion is behind the plan
    ways = np.array([before.distance(t) for t in braking])
    speeds = np.array([before.speed(t) for t in braking])
    for t in np.linspace(share * before.ends, stands, 9):
        near = np.interp(held.distance(t), ways, speeds)
        assert held.speed(t) <= near + 0.05 * program.limits.velocity.max()


@given(programs(), st.floats(0.0, 0.999))
def test_braking_agrees_with_the_plain_version(program: Program, share: float) -> None:
    path = program.path()
    if not len(path):
        return
    plan = planned(path)
    at = share * plan.ends
    place, stop = plan.place(at), brake(plan, at)
    seconds, piece, s = plain_braking(path, place.piece, place.s, place.v)
    assert stop.law.begins[-1] - at == pytest.approx(seconds, abs=1e-6)
    assert path.position(stop.piece, stop.s) == pytest.approx(path.position(piece, s), abs=1e-6)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_hold_while_braking_for_a_corner_stops_at_the_corner(share: float) -> None:
    path = lines(ORIGIN, [[7.0, 0.3, 0.0], [7.0, 20.0, 0.0]], LIMITS, rapid=True)
    plan = planned(path)
    corner = plan.lines()[1][1]
    stop = brake(plan, corner - share * corner / 2.0)  # too short to cruise: half of it brakes
    assert path.position(stop.piece, stop.s) == pytest.approx(path.end[0], abs=1e-6)


def test_hold_and_resume_cost_the_ramps_and_the_wait() -> None:
    stream = Stream(ORIGIN, LIMITS)
    stream.append(straight(), 0.0)
    assert stream.hold(1.0) == pytest.approx(1.1)
    assert stream.held
    stream.resume(3.0)
    # Both ramps cover half of what the cruise would have.
    assert stream.plan.ends == pytest.approx(2.1 + (3.0 - 1.1) + 0.1)
    assert stream.plan.line_at(2.0) == 0


def test_committed_motion_delays_a_hold() -> None:
    stream = Stream(ORIGIN, LIMITS, commit=FIRMWARE_COMMIT)
    stream.append(straight(), 0.0)
    assert stream.hold(1.0) == pytest.approx(1.19)


def test_lines_appended_in_a_hold_wait_for_the_resume() -> None:
    stream = Stream(ORIGIN, LIMITS)
    stream.hold(0.0)
    stream.append(straight(), 1.0)
    assert stream.plan.ends <= 1.0
    assert stream.used(1.0) == 1
    stream.resume(5.0)
    assert stream.plan.ends == pytest.approx(7.1)


def test_a_held_dwell_continues_with_its_remaining_time() -> None:
    stream = Stream(ORIGIN, LIMITS)
    stream.append(dwell_path(ORIGIN, 1.0), 0.0)
    stream.append(straight(), 0.0)
    stream.hold(0.4)
    stream.resume(10.0)
    assert stream.plan.ends == pytest.approx(10.6 + 2.1)


@pytest.mark.parametrize("profile", PROFILES)
@given(program=programs(jerk=True), share=st.floats(0.0, 1.2))
def test_stop_drops_the_rest_and_the_next_line_starts_there(
    program: Program, share: float, profile: Profile
) -> None:
    if not len(program.path()):
        return
    stream = running(program, profile)
    now = share * stream.plan.ends
    stands = stream.stop(now)
    there = stream.at(stands).position
    assert stream.end.tolist() == there.tolist()
    assert stream.used(stands) == 0
    stream.append(lines(there, there + 5.0, program.limits, feed=10.0), now)
    plan = stream.plan
    assert plan.at(stands).position == pytest.approx(there, abs=1e-9)
    assert plan.at(plan.ends).position.tolist() == (there + 5.0).tolist()
    assert_lawful(plan, program.limits)


def test_emergency_stop_is_at_rest_in_the_same_instant() -> None:
    stream = Stream(ORIGIN, LIMITS)
    stream.append(straight(), 0.0)
    before = stream.at(1.0).position
    stream.halt(1.0)
    state = stream.at(1.0)
    assert state.position.tolist() == before.tolist()
    assert not state.velocity.any()
    assert not state.acceleration.any()
    assert stream.used(1.0) == 0


def test_after_a_change_of_position_motion_starts_from_there() -> None:
    stream = Stream(ORIGIN, LIMITS)
    stream.append(straight(), 0.0)
    stream.set_position([1.0, 2.0, 3.0], 1.0)
    assert stream.at(1.0).position.tolist() == [1.0, 2.0, 3.0]
    stream.append(lines(stream.end, [[1.0, 2.0, 53.0]], LIMITS, feed=50.0), 2.0)
    assert stream.plan.ends == pytest.approx(3.1)


def test_a_jerk_limited_stream_needs_jerks() -> None:
    with pytest.raises(ConfigError, match="needs the jerk of every axis"):
        Stream(ORIGIN, Limits.of([1.0] * 3, [1.0] * 3), profile="jerk_limited")


# ── override ────────────────────────────────────────────────────────────────────────────────────


def test_override_acts_from_its_moment_on() -> None:
    stream = Stream(ORIGIN, LIMITS)
    stream.append(straight(), 0.0)
    stream.override(1.0, feed=0.5)
    assert stream.plan.speed(1.0) == pytest.approx(50.0)
    assert stream.plan.speed(1.05) == pytest.approx(25.0)
    stream.override(1.5, feed=2.0)
    assert stream.plan.speed(1.65) == pytest.approx(100.0)


def test_rapid_override_leaves_feeds_alone() -> None:
    stream = Stream(ORIGIN, LIMITS)
    stream.append(straight(), 0.0)
    stream.override(0.5, rapid=0.25)
    assert stream.plan.ends == pytest.approx(2.1)


# ── snapshot ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_a_restored_stream_continues_like_the_saved_one(codec: str) -> None:
    stream = Stream(ORIGIN, LIMITS)
    stream.append(straight(), 0.0)
    stream.hold(1.0)
    module = getattr(msgspec, codec)
    copy = Stream(ORIGIN, LIMITS)
    copy.load(module.decode(module.encode(stream.save())))
    for each in (stream, copy):
        each.resume(2.0)
        each.append(lines(each.end, [[0.0, 50.0, 0.0]], LIMITS, feed=30.0), 2.5, deviation=0.01)
    assert json.dumps(copy.save()) == json.dumps(stream.save())


def test_past_pieces_are_dropped_and_current_ones_kept() -> None:
    stream = Stream(ORIGIN, LIMITS, window=10)
    now = 0.0
    for k in range(3000):
        stream.append(lines(stream.end, [[0.1 * (k % 2), 0, 0]], LIMITS, feed=50.0), now)
        now = stream.plan.ends - 0.001
    assert len(stream.plan.path) < 2500
    assert stream.at(now + 1.0).position.tolist() == stream.end.tolist()


def test_past_changes_are_dropped_and_the_motion_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client changes the override and holds for as long as a motion lasts."""

    def changed_often() -> tuple[list[float], int]:
        stream = Stream(ORIGIN, LIMITS)
        stream.append(straight(1000.0, 1.0), 0.0)
        positions, longest = [], 0
        for number in range(3000):
            now = 0.1 * number
            if number % 3:
                stream.override(now, feed=1.0 + 0.1 * (number % 2))
            elif stream.held:
                stream.resume(now)
            else:
                stream.hold(now)
            positions.append(float(stream.at(now).position[0]))
            longest = max(longest, len(stream.plan.law))
        return positions, longest

    here, few = changed_often()
    monkeypatch.setattr(stream_module, "MANY", 10**9)
    there, many = changed_often()
    assert few < 2 * 1024 < many
    assert np.allclose(here, there, atol=1e-9)
    assert here[-1] > here[0]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_dwell_in_a_hold_is_restored(profile: Profile) -> None:
    stream, restored = (Stream(ORIGIN, LIMITS, profile=profile) for _ in range(2))
    stream.append(dwell_path(ORIGIN, 2.0), 0.0)
    stream.hold(0.5)
    restored.load(json.loads(json.dumps(stream.save())))
    for each in (stream, restored):
        each.resume(10.0)
        assert each.plan.ends == pytest.approx(11.5)
    beyond = stream.save() | {"next": [0, 2.1, 0.0, 0.0]}
    with pytest.raises(msgspec.ValidationError, match="not on its piece"):
        restored.load(beyond)
