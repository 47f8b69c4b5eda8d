"""The protective field: how far robots can go on as commanded until their outlines touch something.

Obstacles stand in two tables, circles and lines, as in `lidar`. The outline of a robot is a
rectangle. All distances are exact: a post too thin for the rays of a lidar counts as well.

A robot goes on with constant speeds, so its path is a line or an arc. The kernel goes along it in
steps, each so long that no point of the outline can reach the obstacle sooner (conservative
advancement); the result is never too large. The field is wider than the outline: by a margin, and
by a little more with each metre ahead, since a robot does not follow the predicted path exactly.
"""

import math

import numpy as np
from numpy.typing import NDArray

from understudy.robots.mobile.wheels import moved_on_arc, pace
from understudy.space.compiled import compiled

Floats = NDArray[np.float64]
Spans = NDArray[np.int64]
"""First row and the row after the last one, for every robot."""

HALF_LENGTH, HALF_WIDTH, AHEAD = range(3)
"""Columns of an outline: half of its sides, and how far its centre is ahead of the pose."""
MARGIN = 0.005
"""Metres by which the field is wider than the outline. An obstacle nearer than twice the margin
narrows it to half of the distance, so that a robot can leave."""
WIDENING = 0.03
"""Metres by which the field widens with each metre ahead."""
TOUCH = 1e-4
"""Metres at which the field touches."""
SLACK = 2.0
"""Metres that a robot may go until the obstacles near it are looked for again: at 1 m/s every other
second, and the list stays short."""
NEAR = 64
"""Most obstacles near a robot that are kept; if there are more, all are looked at."""
STRAIGHT = 0.3
"""rad: a path that turns less is looked at as a wider straight one."""
STEPS = 200
"""Most steps along a path for an obstacle; a path that needs more ends there."""
LEFT, ROUND, PLACE, HEADING, SPREAD, CENTRE, MOTION, JITTER = 0, 1, 2, 4, 5, 6, 8, 11
"""Columns of a certificate: how far (metres) the area that the robot can reach may be displaced
until an obstacle can be in it, 0: there is none; 1 if that area is a ring; the place of the robot,
or of the middle of the ring, when the certificate was made; the yaw of the robot then; how far
(metres) the area reaches from the robot; the middle of the ring, seen from the robot; the speeds,
and by how much they may differ."""
CERTIFICATE = 12
ROUNDING = 1e-6
"""Metres that a certificate leaves for rounding."""


@compiled
def path_seconds(speeds: Floats, seconds: float) -> float:
    """Seconds that are looked ahead: on the spot a full turn at most."""
    if speeds[0] != 0.0 or speeds[1] != 0.0:
        return seconds
    full_turn: float = 2.0 * math.pi / abs(speeds[2])
    return min(seconds, full_turn)


@compiled
def free_way(
    pose: Floats,
    outline: Floats,
    speeds: Floats,
    longest: float,
    margin: float,
    widening: float,
    circles: Floats,
    circle_span: Spans,
    lines: Floats,
    line_span: Spans,
) -> float:
    """How far a robot can go on, in metres measured with `pace`; infinite if it stands still, or
    nothing comes within ``longest`` metres or a full turn on the spot."""
    around = corner_radius(outline)
    metres = pace(speeds[0], speeds[1], speeds[2], around)
    if metres <= 0.0:
        return math.inf
    horizon = path_seconds(speeds, longest / metres)
    first = _first_touch(
        pose,
        outline,
        speeds,
        horizon,
        margin,
        widening * metres,
        around,
        circles,
        circle_span,
        lines,
        line_span,
    )
    return first * metres if first < horizon else math.inf


@compiled
def still_free(pose: Floats, speeds: Floats, certificate: Floats) -> bool:
    """Whether nothing can have come into the way of a robot since `watched_way` made this
    certificate: the world is the same, the robot goes on with the same speeds, and has moved less
    than the nearest obstacle was away from the area that it can reach."""
    if not certificate[LEFT] > 0.0:
        return False
    for column in range(3):
        changed = abs(speeds[column] - certificate[MOTION + column])
        if not changed <= certificate[JITTER]:
            return False
    x, y, turned = pose[0], pose[1], 0.0
    if certificate[ROUND] > 0.0:  # a ring stays where it is while the robot goes round in it
        along, across = math.cos(pose[2]), math.sin(pose[2])
        x += certificate[CENTRE] * along - certificate[CENTRE + 1] * across
        y += certificate[CENTRE] * across + certificate[CENTRE + 1] * along
    else:
        turned = abs(pose[2] - certificate[HEADING])
        turned = min(turned, abs(2.0 * math.pi - turned))
    moved = math.hypot(x - certificate[PLACE], y - certificate[PLACE + 1])
    still: bool = moved + certificate[SPREAD] * turned <= certificate[LEFT]
    return still


@compiled
def watched_way(  # kernel
    pose: Floats,
    outline: Floats,
    speeds: Floats,
    longest: float,
    circles: Floats,
    circle_span: Spans,
    lines: Floats,
    line_span: Spans,
    spot: Floats,
    near: Spans,
    certificate: Floats,
) -> float:
    """The same as `free_way` with `MARGIN` and `WIDENING`, for a robot that is asked at each tick:
    only the obstacles near it are looked at. ``spot``: x, y and radius of a circle in which all
    obstacles are in ``near`` (numbers of circles and lines, then their rows); both are kept up to
    date here. A radius below 0: unknown, since the world has changed. ``certificate`` is filled if
    nothing is in the way (`still_free`)."""
    certificate[LEFT] = 0.0
    if circle_span[0] == circle_span[1] and line_span[0] == line_span[1]:
        return math.inf
    around = corner_radius(outline)
    metres = pace(speeds[0], speeds[1], speeds[2], around)
    if metres <= 0.0:
        return math.inf
    horizon = path_seconds(speeds, longest / metres)
    growth = WIDENING * metres
    x, y, far, fastest = path_middle(pose, outline, speeds, horizon, MARGIN, growth, around)
    if not math.hypot(x - spot[0], y - spot[1]) + far <= spot[2] - TOUCH:
        _find_near(x, y, far + SLACK, circles, circle_span, lines, line_span, spot, near)
    if spot[2] < 0.0:  # too many of them, or the speed is so small that `far` is no number
        first = _first_touch(
            pose,
            outline,
            speeds,
            horizon,
            MARGIN,
            growth,
            around,
            circles,
            circle_span,
            lines,
            line_span,
        )
        return first * metres if first < horizon else math.inf
    swept = swept_area(outline, speeds, horizon, fastest, MARGIN + TOUCH + growth * horizon)
    along, across = math.cos(pose[2]), math.sin(pose[2])
    first, circles_end = horizon, 2 + near[0]
    beyond_far, beyond_swept = math.inf, math.inf
    for k in range(2, circles_end + near[1]):
        n = near[k]
        if k < circles_end:
            x1, y1, x2, y2, radius = (
                circles[n, 0],
                circles[n, 1],
                circles[n, 0],
                circles[n, 1],
                circles[n, 2],
            )
            away = math.hypot(x1 - x, y1 - y) - radius - far
        else:
            x1, y1, x2, y2, radius = lines[n, 0], lines[n, 1], lines[n, 2], lines[n, 3], 0.0
            away = distance_to_line(x, y, x1, y1, x2, y2) - far
        beside = gap_to_swept(pose, along, across, swept, x1, y1, x2, y2, radius)
        beyond_swept = min(beyond_swept, beside)
        beyond_far = min(beyond_far, max(away, beside))
        if not (away >= 0.0 or beside > 0.0):
            first = seconds_to_touch(
                pose,
                outline,
                speeds,
                first,
                MARGIN,
                growth,
                around,
                fastest,
                x1,
                y1,
                x2,
                y2,
                radius,
            )
    if first < horizon:
        return first * metres
    if beyond_far > 0.0:
        certificate[MOTION], certificate[MOTION + 1] = speeds[0], speeds[1]
        certificate[MOTION + 2], certificate[JITTER] = speeds[2], 1e-9 * metres
        _certify(pose, swept, x, y, far, spot, beyond_far, beyond_swept, certificate)
    return math.inf


@compiled
def _certify(
    pose: Floats,
    swept: tuple[float, float, float, float],
    middle_x: float,
    middle_y: float,
    far: float,
    spot: Floats,
    beyond_far: float,
    beyond_swept: float,
    certificate: Floats,
) -> None:
    """Fills a certificate. ``beyond_swept``: how far the obstacles in ``near`` are from the swept
    area; ``beyond_far``: from it, or from a circle with the radius ``far`` around the middle of the
    path. Other obstacles are outside of ``spot``."""
    certificate[ROUND], certificate[HEADING] = 0.0, pose[2]
    certificate[PLACE], certificate[PLACE + 1] = pose[0], pose[1]
    reach = math.hypot(max(-swept[0], swept[1]), max(-swept[2], swept[3]))
    if swept[3] < 0.0:
        along, across = math.cos(pose[2]), math.sin(pose[2])
        x = pose[0] + swept[0] * along - swept[1] * across
        y = pose[1] + swept[0] * across + swept[1] * along
        inside = spot[2] - TOUCH - math.hypot(x - spot[0], y - spot[1]) + swept[3]
        left = min(beyond_swept, inside) - ROUNDING
        reach = math.hypot(swept[0], swept[1]) - swept[3]
        if left > MARGIN:
            certificate[LEFT], certificate[ROUND], certificate[SPREAD] = left, 1.0, 0.0
            certificate[PLACE], certificate[PLACE + 1] = x, y
            certificate[CENTRE], certificate[CENTRE + 1] = swept[0], swept[1]
            return
    inside = spot[2] - TOUCH - math.hypot(middle_x - spot[0], middle_y - spot[1]) - far
    certificate[LEFT] = min(beyond_far, inside) - ROUNDING
    certificate[SPREAD] = max(reach, math.hypot(middle_x - pose[0], middle_y - pose[1]))


@compiled
def swept_area(
    outline: Floats, speeds: Floats, horizon: float, fastest: float, wider: float
) -> tuple[float, float, float, float]:
    """What the outline cannot leave within ``horizon`` seconds, in the body: a rectangle (from x,
    to x, from y, to y), or a ring around the centre of the motion (x, y, inner radius, and the
    outer one with the sign -). It is larger by ``wider``, and by so much that `seconds_to_touch`
    would find in fewer than `STEPS` steps that nothing outside is touched."""
    travel, turn = fastest * horizon, abs(speeds[2]) * horizon
    wider += 0.05 + travel / 50.0
    # Outside of this, `left` in `seconds_to_touch` stays above 5 cm and a fiftieth of the way: its
    # steps are long enough to reach the horizon.
    half, side, ahead = outline[HALF_LENGTH], outline[HALF_WIDTH], outline[AHEAD]
    if not turn > STRAIGHT:
        wider += (travel + corner_radius(outline)) * turn  # directions change by ``turn`` at most
        forward, sideways = speeds[0] * horizon, speeds[1] * horizon
        return (
            ahead - half - wider + min(forward, 0.0),
            ahead + half + wider + max(forward, 0.0),
            min(sideways, 0.0) - side - wider,
            max(sideways, 0.0) + side + wider,
        )
    x, y = -speeds[1] / speeds[2], speeds[0] / speeds[2]
    far_x, far_y = abs(x - ahead) + half, abs(y) + side
    near_x, near_y = max(abs(x - ahead) - half, 0.0), max(abs(y) - side, 0.0)
    return x, y, math.hypot(near_x, near_y) - wider, -math.hypot(far_x, far_y) - wider


@compiled
def gap_to_swept(
    pose: Floats,
    along: float,
    across: float,
    swept: tuple[float, float, float, float],
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    radius: float,
) -> float:
    """How far a line with round ends is at least from what the outline of a robot cannot leave
    (`swept_area`); not above 0: it may be in it. ``along``, ``across``: of the robot's yaw."""
    a1 = (x1 - pose[0]) * along + (y1 - pose[1]) * across
    b1 = (y1 - pose[1]) * along - (x1 - pose[0]) * across
    a2 = (x2 - pose[0]) * along + (y2 - pose[1]) * across
    b2 = (y2 - pose[1]) * along - (x2 - pose[0]) * across
    if swept[3] >= 0.0:
        behind = max(swept[0] - (max(a1, a2) + radius), (min(a1, a2) - radius) - swept[1])
        beside = max(swept[2] - (max(b1, b2) + radius), (min(b1, b2) - radius) - swept[3])
        gap: float = max(behind, beside)
        return gap
    outside = (distance_to_line(swept[0], swept[1], a1, b1, a2, b2) - radius) + swept[3]
    farthest = max(
        math.hypot(a1 - swept[0], b1 - swept[1]), math.hypot(a2 - swept[0], b2 - swept[1])
    )
    ring: float = max(outside, swept[2] - (farthest + radius))
    return ring


@compiled
def path_middle(
    pose: Floats,
    outline: Floats,
    speeds: Floats,
    horizon: float,
    margin: float,
    growth: float,
    around: float,
) -> tuple[float, float, float, float]:
    """The middle of the path, how near to it an obstacle must be to count, and the largest speed of
    a point of the outline."""
    fastest, half = _closing_speed(outline, speeds, 0.0, 0.0), horizon / 2.0
    x, y, _ = moved_on_arc(
        pose[0], pose[1], pose[2], speeds[0] * half, speeds[1] * half, speeds[2] * half
    )
    return x, y, around + margin + TOUCH + fastest * half + growth * horizon, fastest


@compiled
def _find_near(
    x: float,
    y: float,
    radius: float,
    circles: Floats,
    circle_span: Spans,
    lines: Floats,
    line_span: Spans,
    spot: Floats,
    near: Spans,
) -> None:
    """Fills ``near`` and ``spot``; its radius is below 0 if there are too many obstacles."""
    spot[0], spot[1], spot[2] = x, y, -1.0
    near[0] = near[1] = 0
    for n in range(circle_span[0], circle_span[1]):
        if math.hypot(circles[n, 0] - x, circles[n, 1] - y) - circles[n, 2] <= radius:
            if near[0] == NEAR:
                return
            near[2 + near[0]] = n
            near[0] += 1
    for n in range(line_span[0], line_span[1]):
        x1, y1, x2, y2 = lines[n, 0], lines[n, 1], lines[n, 2], lines[n, 3]
        if distance_to_line(x, y, x1, y1, x2, y2) <= radius:
            if near[0] + near[1] == NEAR:
                return
            near[2 + near[0] + near[1]] = n
            near[1] += 1
    if radius < math.inf:
        spot[2] = radius


@compiled
def _first_touch(
    pose: Floats,
    outline: Floats,
    speeds: Floats,
    horizon: float,
    margin: float,
    growth: float,
    around: float,
    circles: Floats,
    circle_span: Spans,
    lines: Floats,
    line_span: Spans,
) -> float:
    """Seconds until the field touches an obstacle, at most ``horizon``. Obstacles far from the
    middle of the path are left out (none if the speed is so small that this is no number)."""
    middle_x, middle_y, far, fastest = path_middle(
        pose, outline, speeds, horizon, margin, growth, around
    )
    first = horizon
    for n in range(circle_span[0], circle_span[1]):
        x, y, radius = circles[n, 0], circles[n, 1], circles[n, 2]
        if not math.hypot(x - middle_x, y - middle_y) - radius >= far:
            first = seconds_to_touch(
                pose, outline, speeds, first, margin, growth, around, fastest, x, y, x, y, radius
            )
    for n in range(line_span[0], line_span[1]):
        x1, y1, x2, y2 = lines[n, 0], lines[n, 1], lines[n, 2], lines[n, 3]
        if not distance_to_line(middle_x, middle_y, x1, y1, x2, y2) >= far:
            first = seconds_to_touch(
                pose, outline, speeds, first, margin, growth, around, fastest, x1, y1, x2, y2, 0.0
            )
    return first


@compiled
def seconds_to_touch(
    pose: Floats,
    outline: Floats,
    speeds: Floats,
    horizon: float,
    margin: float,
    growth: float,
    around: float,
    fastest: float,
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    radius: float,
) -> float:
    """Seconds until the field touches a line with round ends (a circle: a line without length), at
    most ``horizon``. ``growth``: m/s by which the field widens; ``around``: radius of the corners,
    ``fastest``: their largest speed."""
    # Circles first: if even the corners cannot get there in time, nothing more is computed.
    near = distance_to_line(pose[0], pose[1], x1, y1, x2, y2) - radius - around
    if near - margin > (fastest + growth) * horizon:
        return horizon
    left, nx, ny = _gap(outline, pose[0], pose[1], pose[2], x1, y1, x2, y2, radius)
    narrow = min(margin, left / 2.0)
    left -= narrow
    touch = min(TOUCH, left / 10.0)
    seconds = 0.0
    if left <= 0.0:
        return seconds
    # The distance is at least the gap along the direction n in which it is measured now. Along n no
    # point of the outline is faster than ``closing`` at present; velocities turn with the robot, so
    # that this speed grows by |ω|·fastest each second at most. Until the time that follows from
    # both, nothing is touched, however the nearest points wander. There the distance is measured
    # anew. A path whose steps run out ends at the last place that is known to be free.
    for _ in range(STEPS):
        closing = _closing_speed(outline, speeds, nx, ny) + growth
        seconds += _surely_free(left, closing, abs(speeds[2]) * fastest)
        if seconds >= horizon:
            return horizon
        x, y, yaw = _later(pose, speeds, seconds)
        left, nx, ny = _gap(outline, x, y, yaw, x1, y1, x2, y2, radius)
        left -= narrow + growth * seconds
        if left <= touch:
            break
    return seconds


@compiled
def _later(pose: Floats, speeds: Floats, seconds: float) -> tuple[float, float, float]:
    return moved_on_arc(
        pose[0], pose[1], pose[2], speeds[0] * seconds, speeds[1] * seconds, speeds[2] * seconds
    )


@compiled
def _surely_free(left: float, closing: float, bending: float) -> float:
    """Seconds in which no point covers the distance ``left`` that closes with ``closing`` m/s now
    and with ``bending`` m/s2 more at most, since points on arcs change their direction."""
    if bending <= 0.0:
        return left / closing if closing > 0.0 else math.inf
    # The zero of left - closing·t - bending·t²/2, in the form without cancellation for its sign.
    root = math.sqrt(closing * closing + 2.0 * bending * left)
    return 2.0 * left / (closing + root) if closing > 0.0 else (root - closing) / bending


@compiled
def _closing_speed(outline: Floats, speeds: Floats, nx: float, ny: float) -> float:
    """The largest speed of any point of the outline in a direction of the body; without a
    direction: in any. It is that of a corner."""
    fastest = -math.inf
    for end in (outline[AHEAD] - outline[HALF_LENGTH], outline[AHEAD] + outline[HALF_LENGTH]):
        for side in (-outline[HALF_WIDTH], outline[HALF_WIDTH]):
            forward, sideways = speeds[0] - speeds[2] * side, speeds[1] + speeds[2] * end
            if nx == 0.0 and ny == 0.0:
                fastest = max(fastest, math.hypot(forward, sideways))
            else:
                fastest = max(fastest, forward * nx + sideways * ny)
    return fastest


@compiled
def corner_radius(outline: Floats) -> float:
    """Distance of the farthest corner from the pose."""
    return math.hypot(abs(outline[AHEAD]) + outline[HALF_LENGTH], outline[HALF_WIDTH])


@compiled
def outline_clearances(
    poses: Floats,
    outlines: Floats,
    circles: Floats,
    circle_spans: Spans,
    lines: Floats,
    line_spans: Spans,
    clearances: Floats,
) -> None:
    """Fills ``clearances``: metres between the outline of a robot and the nearest obstacle; below 0
    if they overlap, infinite in an empty world."""
    for row in range(poses.shape[0]):
        x, y, yaw = poses[row, 0], poses[row, 1], poses[row, 2]
        least = math.inf
        for n in range(circle_spans[row, 0], circle_spans[row, 1]):
            at, beside, radius = circles[n, 0], circles[n, 1], circles[n, 2]
            least = min(least, _gap(outlines[row], x, y, yaw, at, beside, at, beside, radius)[0])
        for n in range(line_spans[row, 0], line_spans[row, 1]):
            x1, y1, x2, y2 = lines[n, 0], lines[n, 1], lines[n, 2], lines[n, 3]
            least = min(least, _gap(outlines[row], x, y, yaw, x1, y1, x2, y2, 0.0)[0])
        clearances[row] = least


@compiled
def distance_to_line(x: float, y: float, x1: float, y1: float, x2: float, y2: float) -> float:
    """Distance of a point from the line between two points."""
    at, beside = _nearest_of_line(x, y, x1, y1, x2, y2)
    return math.hypot(at - x, beside - y)


@compiled
def _nearest_of_line(
    x: float, y: float, x1: float, y1: float, x2: float, y2: float
) -> tuple[float, float]:
    dx, dy = x2 - x1, y2 - y1
    square = dx * dx + dy * dy
    share = ((x - x1) * dx + (y - y1) * dy) / square if square > 0.0 else 0.0
    share = min(max(share, 0.0), 1.0)
    return x1 + share * dx, y1 + share * dy


@compiled
def _gap(
    outline: Floats,
    x: float,
    y: float,
    yaw: float,
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    radius: float,
) -> tuple[float, float, float]:
    """Distance of the outline of a robot at a pose from a line with round ends, and its direction
    in the body; below 0: they overlap."""
    along, across = math.cos(yaw), math.sin(yaw)
    distance, nx, ny = _to_rectangle(
        outline[HALF_LENGTH],
        outline[HALF_WIDTH],
        (x1 - x) * along + (y1 - y) * across - outline[AHEAD],
        (y1 - y) * along - (x1 - x) * across,
        (x2 - x) * along + (y2 - y) * across - outline[AHEAD],
        (y2 - y) * along - (x2 - x) * across,
    )
    return distance - radius, nx, ny


@compiled
def _to_rectangle(
    half_length: float, half_width: float, x1: float, y1: float, x2: float, y2: float
) -> tuple[float, float, float]:
    """Distance of a line from a rectangle around the origin, and the direction to its nearest
    point; below 0 and without a direction: the depth of the middle of the part inside."""
    inside = _depth(half_length, half_width, x1, y1, x2, y2)
    if inside > 0.0:
        return -inside, 0.0, 0.0
    # Of two convex shapes that are apart, one has a corner among the nearest points: both ends of
    # the line against the rectangle, then its four corners against the line.
    least, dx, dy = math.inf, 0.0, 0.0
    for x, y in ((x1, y1), (x2, y2)):
        ex, ey = max(abs(x) - half_length, 0.0), max(abs(y) - half_width, 0.0)
        away = math.hypot(ex, ey)
        if away < least:
            least, dx, dy = away, math.copysign(ex, x), math.copysign(ey, y)
    for x in (-half_length, half_length):
        for y in (-half_width, half_width):
            at, beside = _nearest_of_line(x, y, x1, y1, x2, y2)
            away = math.hypot(at - x, beside - y)
            if away < least:
                least, dx, dy = away, at - x, beside - y
    if least > 0.0:
        dx, dy = dx / least, dy / least
    return least, dx, dy


@compiled
def _depth(
    half_length: float, half_width: float, x1: float, y1: float, x2: float, y2: float
) -> float:
    """How deep the middle of the part of a line that is inside a rectangle lies; 0: no part is."""
    begin, end = 0.0, 1.0
    for start, change, half in ((x1, x2 - x1, half_length), (y1, y2 - y1, half_width)):
        if change == 0.0:
            if abs(start) >= half:
                end = -1.0
        else:
            low, high = (-half - start) / change, (half - start) / change
            begin, end = max(begin, min(low, high)), min(end, max(low, high))
    if begin >= end:
        return 0.0
    middle = (begin + end) / 2.0
    x, y = abs(x1 + middle * (x2 - x1)), abs(y1 + middle * (y2 - y1))
    return min(half_length - x, half_width - y)
