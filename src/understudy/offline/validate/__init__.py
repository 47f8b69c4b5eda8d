"""A program proved before a robot runs it: what it would do wrong, line by line, and how long it
takes."""

from understudy.offline.validate.judge import Judge, judged
from understudy.offline.validate.report import CLEARANCE, Finding, Kind, LineReport, Options, Report
from understudy.offline.validate.subject import Arm, Machine, Subject

__all__ = [
    "CLEARANCE", "Arm", "Finding", "Judge", "Kind", "LineReport", "Machine", "Options", "Report",
    "Subject", "judged",
]  # fmt: skip
