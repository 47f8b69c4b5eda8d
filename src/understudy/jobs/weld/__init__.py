"""Welding of single seams: the `WeldingSequencer` as a job of an arm."""

from understudy.jobs.weld.sequencer import WeldingSequencer, WeldSettings
from understudy.ports import Component
from understudy.ports.jobs import JobSite

WELD = "weld"
SECTIONS = {WELD: WeldSettings}


def build(site: JobSite) -> dict[str, Component]:
    """`weld`, on a simulated or a REAL arm."""
    settings = site.sections.get(WELD)
    return {} if settings is None else {WELD: WeldingSequencer(site.arm.controller, settings)}


build_real = build
