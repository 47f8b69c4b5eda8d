"""A program proved before a robot runs it: what it would do wrong, line by line, and how long it
takes."""

from understudy.jobs.validate.judge import Judge, judged
from understudy.jobs.validate.report import CLEARANCE, Finding, Kind, LineReport, Options, Report
from understudy.jobs.validate.subject import Arm, Machine, Subject

__all__ = [
    "CLEARANCE", "Arm", "Finding", "Judge", "Kind", "LineReport", "Machine", "Options", "Report",
    "Subject", "judged",
]  # fmt: skip
