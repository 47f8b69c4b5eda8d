"""Modes of operation of a robot, and the changeover between them."""

from collections.abc import Mapping
from typing import Any, get_args

from msgspec import structs

from understudy.jobs.modes.config import ModesConfig
from understudy.ports import Component
from understudy.ports.exploration import Act, Exploration
from understudy.ports.jobs import JobSite, WorkTool
from understudy.ports.modes import JOB_MODE, OperationMode, TargetMode

MODES = "modes"
SECTIONS = {MODES: ModesConfig}


def _request(mode: TargetMode) -> Act:
    return lambda modes, now: modes.request_mode_change(mode, now)


EXPLORED = Exploration(
    acts={mode: _request(mode) for mode in get_args(TargetMode)},
    reach={"state": get_args(OperationMode)},
    reached=lambda modes, now: (("state", modes.current_mode),),
)


def provide(site: JobSite, kind: type, need: Any) -> Any:
    """The tool of the mode in which jobs run, for jobs that work with it."""
    if kind is not WorkTool or MODES not in site.sections:
        return None
    return WorkTool(site.sections[MODES].tools.get(JOB_MODE))


def in_mode(
    sections: Mapping[str, Any], mode: str, allowed: list[str]
) -> tuple[list[str], dict[str, Any]]:
    """The modes that a robot has, and its sections with the cell starting in one of them."""
    modes: ModesConfig | None = sections.get(MODES)
    if modes is None:
        return allowed, dict(sections)
    known = list(get_args(TargetMode))
    changed = {MODES: structs.replace(modes, start=mode)} if mode in known else {}
    return known, {**sections, **changed}


def mode_at_start(sections: Mapping[str, Any]) -> TargetMode | None:
    modes: ModesConfig | None = sections.get(MODES)
    return None if modes is None else modes.start


def build(site: JobSite) -> dict[str, Component]:
    """`modes_motion` and `modes`."""
    if MODES not in site.sections:
        return {}
    from understudy.jobs.modes.manager import mode_components

    return mode_components(site)


def build_real(site: JobSite) -> dict[str, Component]:
    """Nothing: the mode of the simulated robot also decides which job of the REAL one starts."""
    if MODES in site.sections:
        from understudy.jobs.modes.manager import guard_real_job

        guard_real_job(site)
    return {}
