"""Lines and arcs as paths of a machine's axes, equal to those of the firmware."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import Refused
from understudy.gcode import ZERO
from understudy.gcode.requests import AxisArc, AxisMove, JointMove
from understudy.motion.path import Path
from understudy.robots.grblhal.machine.mover import MachineMover, chord_ends, segments
from understudy.robots.grblhal.settings import Settings

REST = np.zeros(6)


def mover(**changes: float) -> MachineMover:
    given = {int(name.removeprefix("s")): value for name, value in changes.items()}
    rates = dict.fromkeys(range(110, 116), 6000.0) | dict.fromkeys(range(120, 126), 500.0)
    return MachineMover.of(Settings(rates | given))


def path(machine: MachineMover, move: AxisMove | AxisArc, start: np.ndarray = REST) -> Path:
    found = machine.path(move, start, line=7)
    assert isinstance(found, Path)
    return found


def circle(radius: float, angle: float, **more: object) -> AxisArc:
    """An arc from the origin around a centre on the X axis."""
    end = radius - radius * np.exp(1j * angle)
    target = (float(end.real), float(end.imag), 0.0, 0.0, 0.0, 0.0)
    return AxisArc(
        **{  # type: ignore[arg-type]
            "target": target,
            "plane": (0, 1),
            "centre": (radius, 0.0),
            "radius": radius,
            "angle": angle,
            "feed": 600.0,
            **more,
        }
    )


# ── lines ──


@pytest.mark.parametrize(
    ("target", "steps"),
    [(10.001, 2500), (10.0021, 2501), (-0.0021, -1), (0.0019, 0), (0.002, 1), (-0.002, -1)],
)
def test_targets_are_rounded_to_whole_steps_half_away_from_zero(target: float, steps: int) -> None:
    assert mover().on_steps(np.array([target] * 6))[0] == steps / 250.0


@given(st.floats(-1000.0, 1000.0))
def test_rounding_is_done_in_single_precision(target: float) -> None:
    scaled = float(np.float32(target) * np.float32(250.0))
    expected = math.copysign(math.floor(abs(scaled) + 0.5), scaled) / 250.0
    assert mover().on_steps(np.array([target] * 6))[0] == expected


def test_a_feed_is_per_minute_along_the_mixed_norm() -> None:
    found = path(mover(), AxisMove((30.0, 0.0, 0.0, 40.0, 0.0, 0.0), feed=600.0))
    assert (found.length[0], found.feed[0]) == (50.0, 10.0)
    assert found.fastest[0] == pytest.approx(100.0 / 0.8)


def test_under_g93_the_feed_counts_moves_per_minute() -> None:
    found = path(mover(), AxisMove((30.0, 0.0, 0.0, 40.0, 0.0, 0.0), feed=30.0, inverse_time=True))
    assert found.feed[0] == pytest.approx(25.0)


def test_a_rapid_has_no_feed() -> None:
    found = path(mover(), AxisMove((3.0, 0.0, 0.0, 0.0, 0.0, 0.0), rapid=True))
    assert found.rapid[0]
    assert found.nominal()[0] == 100.0


@pytest.mark.parametrize(
    ("target", "speed"),
    [
        ((30.0, 0.0, 0.0, 40.0, 0.0, 0.0), 10.0 * 50.0 / 30.0),
        ((30.0, 0.0, 0.0, 0.0, 0.0, 0.0), 10.0),
        ((0.0, 0.0, 0.0, 40.0, 0.0, 0.0), 10.0),
    ],
)
def test_with_701_the_feed_is_that_of_the_linear_axes(
    target: tuple[float, ...], speed: float
) -> None:
    found = path(mover(s701=1), AxisMove(target, feed=600.0))  # type: ignore[arg-type]
    assert found.feed[0] == pytest.approx(speed)


def test_many_lines_at_once_equal_single_lines() -> None:
    moves = [AxisMove((x, x * x / 10, 0.0, 0.0, 0.0, 0.0), feed=60.0 * x) for x in range(1, 6)]
    machine = mover()
    together = machine.straight(moves, REST, line=range(5))
    here = REST
    for number, move in enumerate(moves):
        alone = path(machine, move, here)
        here = alone.end[-1]
        for column in ("shape", "end", "length", "acceleration", "fastest", "feed"):
            assert (getattr(alone, column)[0] == getattr(together, column)[number]).all()


def test_less_than_a_step_is_no_motion() -> None:
    assert not len(path(mover(), AxisMove((0.001, 0.0, 0.0, 0.0, 0.0, 0.0), feed=600.0)))


def test_a_machine_has_no_joints() -> None:
    assert isinstance(mover().path(JointMove(ZERO), REST, line=1), Refused)


# ── arcs ──


def rotated_chords(arc: AxisArc, start: Sequence[float], tolerance: float) -> list[list[float]]:
    """The firmware's loop for one turn, chord by chord."""
    first, second = arc.plane
    rx, ry = start[first] - arc.centre[0], start[second] - arc.centre[1]
    x0, y0 = rx, ry
    count = max(segments(arc.angle, arc.radius, tolerance), 1)
    theta = arc.angle / count
    cosine, sine = 1.0 - theta**2 / 2.0, theta - theta**3 / 6.0
    position, since, points = list(start), 0, []
    for i in range(1, count):
        if since < 12:
            rx, ry = rx * cosine - ry * sine, rx * sine + ry * cosine
            since += 1
        else:
            c, s = math.cos(i * theta), math.sin(i * theta)
            rx, ry = x0 * c - y0 * s, x0 * s + y0 * c
            since = 0
        position = [
            p + (t - b) / count for p, t, b in zip(position, arc.target, start, strict=True)
        ]
        position[first], position[second] = arc.centre[0] + rx, arc.centre[1] + ry
        points.append(position)
    return [*points, list(arc.target)]


@given(
    radius=st.floats(0.5, 80.0),
    angle=st.floats(0.05, math.tau) | st.floats(-math.tau, -0.05),
    tolerance=st.sampled_from([0.002, 0.02, 0.2]),
    rise=st.floats(-20.0, 20.0),
)
def test_chords_are_those_of_the_firmwares_loop(
    radius: float, angle: float, tolerance: float, rise: float
) -> None:
    arc = circle(radius, angle)
    x, y, *_ = arc.target
    arc = circle(radius, angle, target=(x, y, rise, 0.0, 0.0, 5.0))
    plain = rotated_chords(arc, [0.0] * 6, tolerance)
    assert np.allclose(chord_ends(arc, REST, tolerance), plain, atol=1e-9)


@pytest.mark.parametrize(("radius", "count"), [(0.0005, 0), (0.001, 0), (0.0011, 2)])
def test_an_arc_within_its_tolerance_has_no_chords(radius: float, count: int) -> None:
    assert segments(math.pi, radius, 0.002) == count


def test_each_turn_has_its_own_chords() -> None:
    arc = circle(5.0, 2.5 * math.tau, target=(10.0, 0.0, 25.0, 0.0, 0.0, 0.0))
    ends = chord_ends(arc, REST, 0.002)
    whole = segments(math.tau, 5.0, 0.002)
    half = segments(math.pi, 5.0, 0.002)
    assert len(ends) == 2 * whole + half
    assert ends[whole - 1].tolist() == pytest.approx([0.0, 0.0, 10.0, 0.0, 0.0, 0.0])
    assert ends[-1].tolist() == list(arc.target)


@pytest.mark.parametrize("plane", [(0, 1), (2, 0), (1, 2)])
def test_an_arc_lies_in_its_plane(plane: tuple[int, int]) -> None:
    target = [0.0] * 6
    target[plane[0]], target[plane[1]] = 5.0, 5.0
    arc = AxisArc(tuple(target), plane, (5.0, 0.0), 5.0, -math.pi / 2, 600.0)  # type: ignore[arg-type]
    ends = chord_ends(arc, REST, 0.002)
    spokes = ends[:, list(plane)] - np.array(arc.centre)
    assert np.allclose(np.linalg.norm(spokes, axis=1), 5.0, atol=1e-4)
    assert not ends[:, 3 - sum(plane)].any()


def test_an_arc_smaller_than_its_tolerance_is_a_line() -> None:
    assert len(path(mover(s12=0.5), circle(0.2, math.pi))) == 1


def test_under_g93_the_feed_of_an_arc_is_the_firmwares() -> None:
    """It multiplies F by the number of chords and takes that as a plain feed."""
    found = path(mover(), circle(5.0, math.pi, feed=6.0, inverse_time=True))
    assert found.feed == pytest.approx(6.0 * segments(math.pi, 5.0, 0.002) / 60.0)
