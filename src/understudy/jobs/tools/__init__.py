"""The tools of an arm: their table, and changes at the docks of a tool changer."""

from understudy.ports import Component
from understudy.ports.jobs import JobSite
from understudy.ports.tools import ChangesTools

SECTIONS: dict[str, type] = {}


def build(site: JobSite) -> dict[str, Component]:
    """`tools`, for a robot with a job or a tool changer; with the latter also `tool_motion` and
    `tool_change`."""
    changer = site.find(ChangesTools)
    if not site.sections and changer is None:
        return {}
    from understudy.jobs.tools.change import tool_components

    return tool_components(site, changer)
