"""M70 … M73: the modal state is saved, and restored later."""

from msgspec.structs import asdict, replace

from understudy.errors import Refused
from understudy.gcode.actions import Work
from understudy.gcode.modal import SavedModes
from understudy.gcode.requests import Coolant, Overrides, Spindle

_OVERRIDES = ("feed_override", "speed_override", "hold_allowed")
_COOLANT = ("mist", "flood")
_SPINDLE = ("spindle", "speed")


def save_modes(work: Work) -> Refused | None:
    """M70 and M73 save the modes, M71 forgets them.

    Feed and spindle are saved as this line sets them, all other modes as they were before it.
    """
    name = work.command("modal state")
    if name == "M71":
        work.changes["saved"] = None
    elif name in ("M70", "M73"):
        old = {field: getattr(work.old, field) for field in SavedModes.__struct_fields__}
        changed = {field: work.changes[field] for field in _SPINDLE if field in work.changes}
        now = {"feed": work.feed, "feed_mode": work.feed_mode}
        work.changes["saved"] = SavedModes(**(old | changed | now))
    return None


def restore_modes(work: Work) -> bool:
    """M72: the saved modes replace those that the line itself has set; motion is not restored."""
    saved = work.old.saved
    if work.command("modal state") != "M72" or saved is None:
        return False
    fields = asdict(saved)
    if all(getattr(work.old, field) == fields[field] for field in _SPINDLE):
        for field in _SPINDLE:
            del fields[field]
    if saved.tool_offset == work.changes.get("tool_offset", work.old.tool_offset) and not any(
        saved.tool_length
    ):
        del fields["tool_length"]
    now = replace(work.old, **{key: work.changes[key] for key in fields if key in work.changes})
    work.changes.update(fields)
    after = replace(now, **fields)
    if any(getattr(now, field) != getattr(after, field) for field in _SPINDLE):
        work.requests.append(Spindle(after.spindle, after.speed))
    if any(getattr(now, field) != getattr(after, field) for field in _COOLANT):
        work.requests.append(Coolant(after.mist, after.flood))
    if any(getattr(now, field) != getattr(after, field) for field in _OVERRIDES):
        work.requests.append(
            Overrides(after.feed_override, after.speed_override, after.hold_allowed)
        )
    work.coordinates = after.coordinates
    return True
