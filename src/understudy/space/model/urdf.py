"""Reads URDF text into a RobotModel; errors name the wrong link or joint. Opens no file.

Extensions of the standard:

- ``<capsule radius="" length=""/>`` as a geometry; the length is that of its straight part.
- ``<collision_checking><capsule name=""/></collision_checking>`` inside a link, as in pinocchio:
  the cylinder of that name is read as a capsule here, and as a cylinder by other programs.
- ``<understudy acceleration="" jerk=""/>`` inside a joint: rad/s² and rad/s³ (m for prismatic).
- ``<understudy index=""/>`` inside a link: its number in lists of collision pairs.

Many published files have placeholders for limits. An effort of 0 means "no limit given". A speed of
0 or one that no joint has, and an effort of all joints that cannot hold the arm, are replaced, and
named in `doubts`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from understudy.errors import ConfigError, unknown
from understudy.space.model.robot import (
    Box,
    Capsule,
    Cylinder,
    Geometry,
    Inertial,
    Joint,
    Link,
    Mesh,
    RobotModel,
    Solid,
    Sphere,
    Vector,
)
from understudy.space.pose import Pose
from understudy.space.transform import matrix, pose, rotation_about

KINDS = ("revolute", "continuous", "prismatic", "fixed")
LINK_PARTS = frozenset({"inertial", "collision", "visual", "collision_checking", "understudy"})
LINK_PARTS |= {"self_collision_checking"}  # of Drake and MATLAB
JOINT_PARTS = frozenset({"origin", "parent", "child", "axis", "limit", "dynamics", "understudy"})
JOINT_PARTS |= {"calibration", "safety_controller", "mimic"}
ROBOT_PARTS = frozenset({"link", "joint", "material", "transmission", "gazebo", "ros2_control"})
MISSPELT = 0.8
"""Similarity from which an unknown element is taken for a misspelt one."""
TIPS = ("tool0", "flange", "ee_link", "tool_link", "link_eef", "tcp", "end_effector", "tool_frame")
"""Names of a flange, or their ends; the tip, where several links could be it. ROS-Industrial uses
the first."""
ARM_JOINTS = 4
"""Moving joints from which on a branch is an arm, and may end at a gripper."""
JAWS = ("finger", "gripper", "jaw", "knuckle", "claw")
"""Words in the names of joints behind the arm: they open and close a gripper."""
ASSUMED_SPEED, ASSUMED_SLIDING = math.pi, 1.0
"""rad/s and m/s of joints without a speed."""
FASTEST = 50.0
"""rad/s or m/s above which a speed is a placeholder."""
STANDARD_GRAVITY = 9.80665
LEVER = 0.25
"""The part of an arm's length at which its mass is, at least, when it is stretched out."""
MOST = {"link": 1000, "joint": 1000, "shape": 5000}
"""Elements of a URDF; shapes are those of collision and visual elements together."""
NOTHING_FIXED: Mapping[str, float] = {}


def read(
    text: str,
    *,
    base: str = "",
    tip: str = "",
    fixed: Mapping[str, float] = NOTHING_FIXED,
    file: str = "",
) -> RobotModel:
    """Reads a robot; base and tip are derived from the tree of links if they are not given.

    Joints named in ``fixed`` stay at that value (rad, m). Moving joints that are not between base
    and tip, as those of a gripper's fingers, stay at zero, or at the limit next to it.
    """
    name, links, joints = elements(text, file=file)
    try:
        joints = _with_fixed(joints, fixed)
        base, tip = tree(links, joints, base, tip)
        joints = _with_arm_only(joints, base, tip)
    except ConfigError as error:
        raise error.within("", file=file) from None
    joints, doubts = with_plausible_limits(joints, links)
    return RobotModel(name, links, joints, base, tip, doubts)


def elements(text: str, *, file: str = "") -> tuple[str, tuple[Link, ...], tuple[Joint, ...]]:
    """Reads name, links and joints of a URDF; they need not form one arm."""
    try:
        return _elements(text)
    except ConfigError as error:
        raise error.within("", file=file) from None


@lru_cache(maxsize=16)  # a cell reads the file of a robot for its digest and for its parts
def _elements(text: str) -> tuple[str, tuple[Link, ...], tuple[Joint, ...]]:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ConfigError("document types and entities are not allowed")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        line, _ = error.position  # the message has the column
        raise ConfigError(f"not XML: {error.msg}", line=line) from error
    if root.tag != "robot":
        raise ConfigError("not a URDF", value=f"<{root.tag}>", allowed="<robot>")
    _check_counts(root)
    _known(root, ROBOT_PARTS, "robot")
    colors = {name: color for name, color in map(_color, root.iter("material")) if color}
    links = tuple(_link(e, colors) for e in root.findall("link"))
    joints = tuple(_joint(e) for e in root.findall("joint"))
    return root.get("name", "robot"), links, joints


def _check_counts(root: Element) -> None:
    """Raises a ConfigError if the file has more than a robot needs."""
    counts = {"link": len(root.findall("link")), "joint": len(root.findall("joint"))}
    counts["shape"] = sum(1 for _ in root.iter("geometry"))
    for kind, count in counts.items():
        if count > MOST[kind]:
            allowed = f"a URDF has at most {MOST[kind]}"
            raise ConfigError(f"too many {kind}s", value=count, allowed=allowed)


# ── links ───────────────────────────────────────────────────────────────────────────────────────

Colors = dict[str, tuple[float, float, float, float]]


def _link(element: Element, colors: Colors) -> Link:
    name = _name(element, "link")
    where = f"link '{name}'"
    _known(element, LINK_PARTS, where)
    extension = element.find("understudy")
    index = None if extension is None else round(_number(extension, "index", where))
    rounded = {e.get("name", "") for e in element.findall("collision_checking/capsule")}
    return Link(
        name,
        _inertial(element.find("inertial"), where),
        tuple(_round(_solid(e, where, colors), rounded) for e in element.findall("collision")),
        tuple(_solid(e, where, colors) for e in element.findall("visual")),
        index,
    )


def _inertial(element: Element | None, where: str) -> Inertial:
    if element is None:
        return Inertial(0.0)
    mass = _number(_child(element, "mass", where), "value", where)
    tensor = _child(element, "inertia", where)
    values = {
        key: _number(tensor, key, where) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    }
    if mass < 0 or min(values["ixx"], values["iyy"], values["izz"]) < 0:
        raise ConfigError("mass and moments of inertia must not be negative", key=where)
    return Inertial(mass, _origin(element, where), **values)


def _solid(element: Element, where: str, colors: Colors) -> Solid:
    material = element.find("material")
    color = None
    if material is not None:
        name, color = _color(material)
        color = color or colors.get(name)
    geometry = _geometry(_child(element, "geometry", where), where)
    return Solid(geometry, _origin(element, where), element.get("name", ""), color)


def _round(solid: Solid, names: set[str]) -> Solid:
    shape = solid.geometry
    if solid.name not in names or not isinstance(shape, Cylinder):
        return solid
    return replace(solid, geometry=Capsule(shape.radius, shape.length))


def _geometry(element: Element, where: str) -> Geometry:
    shapes = list(element)
    if len(shapes) != 1:
        raise ConfigError("a geometry has exactly one shape", key=where, value=len(shapes))
    shape = shapes[0]
    match shape.tag:
        case "box":
            return Box(_vector(shape, "size", where))
        case "sphere":
            return Sphere(_size(shape, "radius", where))
        case "cylinder":
            return Cylinder(_size(shape, "radius", where), _size(shape, "length", where))
        case "capsule":
            return Capsule(_size(shape, "radius", where), _size(shape, "length", where))
        case "mesh":
            filename = shape.get("filename")
            if not filename:
                raise ConfigError("mesh without filename", key=where)
            return Mesh(filename, _vector(shape, "scale", where, default=(1.0, 1.0, 1.0)))
    raise ConfigError(
        "unknown shape", key=where, value=shape.tag, allowed="box sphere cylinder capsule mesh"
    )


def _color(element: Element) -> tuple[str, tuple[float, float, float, float] | None]:
    name = element.get("name", "")
    color = element.find("color")
    if color is None:
        return name, None
    r, g, b, a = _numbers(color, "rgba", f"material '{name}'", 4)
    return name, (r, g, b, a)


# ── joints ──────────────────────────────────────────────────────────────────────────────────────


def _joint(element: Element) -> Joint:
    name = _name(element, "joint")
    where = f"joint '{name}'"
    kind = element.get("type", "")
    if kind not in KINDS:
        raise ConfigError("unknown joint type", key=where, value=kind, allowed=" ".join(KINDS))
    _known(element, JOINT_PARTS, where)
    parent = _text(_child(element, "parent", where), "link", where)
    child = _text(_child(element, "child", where), "link", where)
    origin = _origin(element, where)
    if kind == "fixed":
        return Joint(name, kind, parent, child, origin)
    lower, upper, velocity, effort = _limits(element, kind, where)
    acceleration, jerk = _extension(element, where)
    dynamics = element.find("dynamics")
    return Joint(
        name,
        kind,
        parent,
        child,
        origin,
        _axis(element, where),
        lower,
        upper,
        velocity,
        effort,
        acceleration,
        jerk,
        0.0 if dynamics is None else _number(dynamics, "damping", where, default=0.0),
        0.0 if dynamics is None else _number(dynamics, "friction", where, default=0.0),
        _mimicked(element),
    )


def _mimicked(element: Element) -> str:
    mimic = element.find("mimic")
    return "" if mimic is None else mimic.get("joint", "")


def _axis(element: Element, where: str) -> Vector:
    axis = element.find("axis")
    if axis is None:
        return 1.0, 0.0, 0.0
    x, y, z = _vector(axis, "xyz", where)
    length = math.sqrt(x * x + y * y + z * z)
    if length < 1e-9:
        raise ConfigError("an axis needs a direction", key=where, value=axis.get("xyz"))
    return x / length, y / length, z / length


def _limits(element: Element, kind: str, where: str) -> tuple[float, float, float, float]:
    limit = _child(element, "limit", where)
    velocity = _number(limit, "velocity", where, default=0.0)
    effort = _number(limit, "effort", where, default=0.0)
    if velocity < 0 or effort < 0:
        raise ConfigError(
            "limit",
            key=where,
            value=f"velocity {velocity:g}, effort {effort:g}",
            allowed="velocity and effort 0 (not given) or above",
        )
    effort = effort or math.inf
    if kind == "continuous":
        return -math.inf, math.inf, velocity, effort
    lower, upper = _number(limit, "lower", where), _number(limit, "upper", where)
    if lower >= upper:
        raise ConfigError(
            "limit", key=where, value=f"lower {lower:g}, upper {upper:g}", allowed="lower < upper"
        )
    return lower, upper, velocity, effort


def _extension(element: Element, where: str) -> tuple[float, float]:
    extension = element.find("understudy")
    if extension is None:
        return math.inf, math.inf
    for key in extension.keys():  # noqa: SIM118  (an Element is no mapping)
        if key not in ("acceleration", "jerk"):
            raise ConfigError(
                "unknown attribute", key=where, value=key, allowed="acceleration jerk"
            )
    acceleration = _number(extension, "acceleration", where, default=math.inf)
    jerk = _number(extension, "jerk", where, default=math.inf)
    if acceleration <= 0 or jerk <= 0:
        raise ConfigError("acceleration and jerk must be above 0", key=where)
    return acceleration, jerk


# ── attributes ──────────────────────────────────────────────────────────────────────────────────


def _known(element: Element, allowed: frozenset[str], where: str) -> None:
    """Raises a ConfigError for a misspelt element; other programs' own elements are ignored."""
    for child in element:
        if child.tag in allowed:
            continue
        names = sorted(allowed)
        if nearest := get_close_matches(child.tag, names, 1, cutoff=MISSPELT):
            raise ConfigError(
                "not supported",
                key=where,
                value=f"<{child.tag}>",
                allowed=" ".join(names),
                nearest=nearest[0],
            )


def _name(element: Element, kind: str) -> str:
    return _text(element, "name", f"a {kind}")


def _text(element: Element, key: str, where: str) -> str:
    value = element.get(key)
    if not value:
        raise ConfigError(f"<{element.tag}> without {key}", key=where)
    return value


def _child(element: Element, tag: str, where: str) -> Element:
    child = element.find(tag)
    if child is None:
        raise ConfigError(f"<{tag}> is missing", key=where)
    return child


def _numbers(element: Element, key: str, where: str, count: int) -> tuple[float, ...]:
    text = element.get(key)
    if text is None:
        raise ConfigError(f"<{element.tag}> without {key}", key=where)
    try:
        values = tuple(float(word) for word in text.split())
    except ValueError:
        values = ()
    if len(values) != count or not all(math.isfinite(v) for v in values):
        raise ConfigError(
            f"<{element.tag}> {key}",
            key=where,
            value=text,
            allowed="a number" if count == 1 else f"{count} numbers",
        )
    return values


def _number(element: Element, key: str, where: str, *, default: float | None = None) -> float:
    if default is not None and element.get(key) is None:
        return default
    return _numbers(element, key, where, 1)[0]


def _size(element: Element, key: str, where: str) -> float:
    value = _number(element, key, where)
    if value <= 0:
        raise ConfigError(f"<{element.tag}> {key}", key=where, value=value, allowed="above 0")
    return value


def _vector(element: Element, key: str, where: str, *, default: Vector | None = None) -> Vector:
    if default is not None and element.get(key) is None:
        return default
    x, y, z = _numbers(element, key, where, 3)
    return x, y, z


def _origin(element: Element, where: str) -> Pose:
    origin = element.find("origin")
    if origin is None:
        return Pose(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    zero = (0.0, 0.0, 0.0)
    return Pose(
        *_vector(origin, "xyz", where, default=zero), *_vector(origin, "rpy", where, default=zero)
    )


# ── the tree of links ─────────────────────────────────────────────────────────────────────────────


def tree(links: Sequence[Link], joints: Sequence[Joint], base: str, tip: str) -> tuple[str, str]:
    """Base and tip of the arm; raises a ConfigError if the links form no serial arm."""
    names = _unique(links, joints)
    leads_to = _parents(joints, names)
    root = _root(names, leads_to)
    for key, name in (("base", base), ("tip", tip)):
        if name and name not in names:
            raise ConfigError("no such link", key=key, value=name, allowed=" ".join(names))
    base = base or root
    tip = tip or _tip(base, names, leads_to)
    if not any(joint.moves for joint in _joints_between(base, tip, leads_to)):
        raise ConfigError(f"no joint moves between '{base}' and '{tip}'", key="robot")
    return base, tip


def _with_fixed(joints: tuple[Joint, ...], fixed: Mapping[str, float]) -> tuple[Joint, ...]:
    moving = [joint.name for joint in joints if joint.moves]
    for name in fixed:
        if name not in moving:
            raise unknown("moving joint", name, moving, key="fixed joints")
    return tuple(_held(j, fixed[j.name]) if j.name in fixed else j for j in joints)


def _with_arm_only(joints: tuple[Joint, ...], base: str, tip: str) -> tuple[Joint, ...]:
    """The joints with all that are not part of the arm held at rest."""
    arm = _joints_between(base, tip, {joint.child: joint for joint in joints})
    for joint in arm:
        if joint.mimics:
            raise ConfigError(
                f"follows joint '{joint.mimics}' (mimic), which joints of the arm cannot",
                key=f"joint '{joint.name}'",
            )
    return tuple(
        joint if joint in arm or not joint.moves else _held(joint, _rest(joint)) for joint in joints
    )


def with_plausible_limits(
    joints: tuple[Joint, ...], links: Sequence[Link]
) -> tuple[tuple[Joint, ...], tuple[str, ...]]:
    """The joints without placeholders for limits, and what was replaced."""
    doubts = []
    strange = [j for j in joints if j.moves and not 0.0 < j.velocity <= FASTEST]
    if strange:
        names = ", ".join(f"{joint.name} ({joint.velocity:g})" for joint in strange)
        doubts.append(
            f"velocity of {names}: no real limit; {math.degrees(ASSUMED_SPEED):g} deg/s (m/s: "
            f"{ASSUMED_SLIDING:g}) are taken; `limits: {{velocity_deg_s: …}}` sets it"
        )
    efforts = {joint.effort for joint in joints if joint.moves}
    weak = len(efforts) == 1 and max(efforts) < _least_effort(joints, links)
    if weak:
        doubts.append(
            f"effort of all joints: {max(efforts):g} Nm cannot hold this arm; none is taken; "
            "`limits: {effort: …}` sets it"
        )
    return (
        tuple(_with_limits(j, replaces=j in strange, weak=weak) if j.moves else j for j in joints),
        tuple(doubts),
    )


def _with_limits(joint: Joint, *, replaces: bool, weak: bool) -> Joint:
    speed = ASSUMED_SLIDING if joint.kind == "prismatic" else ASSUMED_SPEED
    velocity = speed if replaces else joint.velocity
    return replace(joint, velocity=velocity, effort=math.inf if weak else joint.effort)


def _least_effort(joints: Sequence[Joint], links: Sequence[Link]) -> float:
    """Nm that the shoulder of an arm with several joints needs at least, when it is stretched."""
    moving = [joint for joint in joints if joint.moves]
    if len(moving) < ARM_JOINTS or any(joint.kind == "prismatic" for joint in moving):
        return 0.0
    behind = {joint.child for joint in moving[1:]}
    mass = sum(link.inertial.mass for link in links if link.name in behind)
    length = sum(math.dist((0, 0, 0), (j.origin.x, j.origin.y, j.origin.z)) for j in moving[2:])
    return STANDARD_GRAVITY * mass * LEVER * length


def _rest(joint: Joint) -> float:
    return min(max(0.0, joint.lower), joint.upper)


def _held(joint: Joint, value: float) -> Joint:
    """The joint as a fixed one that stays at this value."""
    if value == 0.0:
        return Joint(joint.name, "fixed", joint.parent, joint.child, joint.origin)
    moved = np.eye(4)
    if joint.kind == "prismatic":
        moved[:3, 3] = value * np.array(joint.axis)
    else:
        moved[:3, :3] = rotation_about(joint.axis, value)
    origin = pose(matrix(joint.origin) @ moved)
    return Joint(joint.name, "fixed", joint.parent, joint.child, origin)


def _unique(links: Sequence[Link], joints: Sequence[Joint]) -> tuple[str, ...]:
    for kind, found in (("link", [k.name for k in links]), ("joint", [j.name for j in joints])):
        for name, count in Counter(found).items():
            if count > 1:
                raise ConfigError("the name is used twice", key=f"{kind} '{name}'")
    if not links:
        raise ConfigError("no links", key="robot")
    return tuple(link.name for link in links)


def _parents(joints: Sequence[Joint], names: Iterable[str]) -> dict[str, Joint]:
    leads_to: dict[str, Joint] = {}
    names = frozenset(names)
    for joint in joints:
        where = f"joint '{joint.name}'"
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in names:
                raise ConfigError(f"{role} is not a link of this robot", key=where, value=name)
        if joint.child in leads_to:
            other = leads_to[joint.child].name
            raise ConfigError(
                f"link '{joint.child}' already hangs on joint '{other}'; loops are not supported",
                key=where,
            )
        leads_to[joint.child] = joint
    return leads_to


def _root(names: Sequence[str], leads_to: dict[str, Joint]) -> str:
    roots = [name for name in names if name not in leads_to]
    if len(roots) != 1:
        raise ConfigError("exactly one link, the base, has no parent", key="robot", value=roots)
    return roots[0]


def _joints_between(base: str, name: str, leads_to: dict[str, Joint]) -> list[Joint]:
    joints_up: list[Joint] = []
    while name != base:
        if name not in leads_to or len(joints_up) > len(leads_to):
            raise ConfigError(f"no joints lead from '{base}' to it", key=f"link '{name}'")
        joints_up.append(leads_to[name])
        name = leads_to[name].parent
    return joints_up


def _tip(base: str, names: Sequence[str], leads_to: dict[str, Joint]) -> str:
    """The last link of the branch with the most moving joints, then with the most joints. Jaws of
    a gripper count as part of neither."""
    leads_to = _without_jaws(base, leads_to)
    names = [name for name in names if name == base or name in leads_to]
    parents = {joint.parent for joint in leads_to.values()}
    ends: dict[tuple[int, int], list[str]] = {}
    for name in names:
        if name in parents or not _below(base, name, leads_to):
            continue
        joints_up = _joints_between(base, name, leads_to)
        ends.setdefault((sum(joint.moves for joint in joints_up), len(joints_up)), []).append(name)
    if not ends:
        return base
    most = max(ends)
    best = ends[most]
    if len(best) == 1:
        return best[0]
    flanges = [name for key, found in ends.items() if key[0] == most[0] for name in found]
    for name in TIPS:
        found = [each for each in flanges if each == name or each.lower().endswith(f"_{name}")]
        if len(found) == 1 or name in found:
            return name if name in found else found[0]
    raise ConfigError(
        "several links could be the tip: name one", key="tip", allowed=", ".join(best)
    )


def _without_jaws(base: str, leads_to: dict[str, Joint]) -> dict[str, Joint]:
    """The joints without those that open and close a gripper, and what hangs on them.

    They are behind an arm, and follow another joint, are followed, depart from one link in several
    directions, or are named so.
    """
    beyond: dict[str, list[str]] = {}
    for name, joint in leads_to.items():
        beyond.setdefault(joint.parent, []).append(name)
    followed = {joint.mimics for joint in leads_to.values() if joint.mimics}
    kept: dict[str, Joint] = {}
    waiting = [(base, 0)]
    while waiting:
        link, moving = waiting.pop()
        branches = [name for name in beyond.get(link, ()) if _moves_from(name, leads_to, beyond)]
        for name in beyond.get(link, ()):
            joint = leads_to[name]
            named = any(word in joint.name.lower() for word in JAWS)
            paired = bool(joint.mimics) or joint.name in followed or named
            jaw = (joint.moves and paired) or (name in branches and len(branches) > 1)
            if jaw and moving >= ARM_JOINTS:
                continue
            kept[name] = joint
            waiting.append((name, moving + joint.moves))
    return kept


def _moves_from(name: str, leads_to: dict[str, Joint], beyond: dict[str, list[str]]) -> bool:
    """Whether a joint moves that leads to this link or to one that hangs on it."""
    waiting = [name]
    while waiting:
        found = waiting.pop()
        if leads_to[found].moves:
            return True
        waiting += beyond.get(found, [])
    return False


def _below(base: str, name: str, leads_to: dict[str, Joint]) -> bool:
    seen: set[str] = set()
    while name != base and name in leads_to and name not in seen:
        seen.add(name)
        name = leads_to[name].parent
    return name == base
