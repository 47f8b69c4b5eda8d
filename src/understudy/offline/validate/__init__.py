"""Validation of a program before a robot runs it: violations line by line, and the cycle time."""

from understudy.offline.validate.judge import Judge, judge_events
from understudy.offline.validate.report import CLEARANCE, Finding, Kind, LineReport, Options, Report
from understudy.offline.validate.subject import Arm, Machine, Subject

__all__ = [
    "CLEARANCE", "Arm", "Finding", "Judge", "Kind", "LineReport", "Machine", "Options", "Report",
    "Subject", "judge_events",
]  # fmt: skip
