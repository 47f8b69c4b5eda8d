"""The tree of links that joints make: one root, no loops, one arm that moves."""

from collections.abc import Sequence

from understudy.errors import ConfigError
from understudy.space.model.robot import Joint, Link


def tree(links: Sequence[Link], joints: Sequence[Joint], base: str, tip: str) -> tuple[str, str]:
    """Base and tip of the arm, or the ConfigError that says why there is none."""
    names = _unique(links, joints)
    leads_to = _parents(joints, names)
    root = _root(names, leads_to)
    for key, name in (("base", base), ("tip", tip)):
        if name and name not in names:
            raise ConfigError("no such link", key=key, value=name, allowed=" ".join(names))
    base = base or root
    tip = tip or _tip(base, names, leads_to)
    on_way = _way(base, tip, leads_to)
    if not any(joint.moves for joint in on_way):
        raise ConfigError(f"no joint moves between '{base}' and '{tip}'", key="robot")
    for joint in joints:
        if joint.moves and joint not in on_way:
            raise ConfigError(
                f"moves, but is not on the way from '{base}' to '{tip}': "
                "make it fixed, or name another base or tip",
                key=f"joint '{joint.name}'",
            )
    return base, tip


def _unique(links: Sequence[Link], joints: Sequence[Joint]) -> tuple[str, ...]:
    for kind, found in (("link", [k.name for k in links]), ("joint", [j.name for j in joints])):
        for name in found:
            if found.count(name) > 1:
                raise ConfigError("the name is used twice", key=f"{kind} '{name}'")
    if not links:
        raise ConfigError("no links", key="robot")
    return tuple(link.name for link in links)


def _parents(joints: Sequence[Joint], names: Sequence[str]) -> dict[str, Joint]:
    leads_to: dict[str, Joint] = {}
    for joint in joints:
        where = f"joint '{joint.name}'"
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in names:
                raise ConfigError(f"{role} is no link of this robot", key=where, value=name)
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
        raise ConfigError("one link has no parent, the foot", key="robot", value=roots)
    return roots[0]


def _way(base: str, name: str, leads_to: dict[str, Joint]) -> list[Joint]:
    way: list[Joint] = []
    while name != base:
        if name not in leads_to or len(way) > len(leads_to):
            raise ConfigError(f"there is no way from '{base}' to it", key=f"link '{name}'")
        way.append(leads_to[name])
        name = leads_to[name].parent
    return way


def _tip(base: str, names: Sequence[str], leads_to: dict[str, Joint]) -> str:
    """The end of the branch with most moving joints; of those the one furthest out."""
    parents = {joint.parent for joint in leads_to.values()}
    ends: dict[tuple[int, int], list[str]] = {}
    for name in names:
        if name in parents or not _below(base, name, leads_to):
            continue
        way = _way(base, name, leads_to)
        ends.setdefault((sum(joint.moves for joint in way), len(way)), []).append(name)
    if not ends:
        return base
    best = ends[max(ends)]
    if len(best) > 1:
        raise ConfigError("several links could be the tip: name one", key="tip", value=best)
    return best[0]


def _below(base: str, name: str, leads_to: dict[str, Joint]) -> bool:
    seen: set[str] = set()
    while name != base and name in leads_to and name not in seen:
        seen.add(name)
        name = leads_to[name].parent
    return name == base
