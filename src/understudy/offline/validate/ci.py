"""Reports for build servers: JUnit XML and SARIF 2.1.0."""

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from understudy.offline.json_stream import Listed, indented_list
from understudy.offline.validate.report import KINDS, Finding, FindingKind, Report

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
NOT_XML = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""
MEANING: dict[FindingKind, str] = {
    "syntax": "The line cannot be read",
    "unsupported": "The controller does not know this command",
    "joint_limit": "A joint would leave its range",
    "unreachable": "The pose is out of reach",
    "singularity": "The path of the tool leads through a singular pose",
    "velocity": "The programmed feed is faster than the joints can follow",
    "acceleration": "The programmed feed bends faster than the joints can follow",
    "jerk": "The bend changes faster at the programmed feed than the jerk of the joints allows",
    "torque": "A joint needs more torque than it has",
    "self_collision": "The arm touches itself",
    "collision": "The arm touches an object",
    "zone": "The arm enters a forbidden zone",
    "process": "The welding process is not as required",
    "io": "A wait for an input never ends",
}


def junit(reports: Sequence[Report]) -> Iterator[str]:
    """JUnit XML in pieces: a suite per program, a case per kind of violation; a failure names the
    lines, warnings are the output of a case."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
    for report in reports:
        yield from _suite(report)
    yield "</testsuites>\n"


def _suite(report: Report) -> Iterator[str]:
    found, warned = (_by_kind(each) for each in (report.violations, report.warnings))
    failed = sum(kind in found for kind in KINDS)
    head = (
        f'name={quoteattr(_clean(report.program))} tests="{len(KINDS)}" failures="{failed}" '
        f'errors="0" time="{report.wall_s:.3f}"'
    )
    yield f"<testsuite {head}>\n"
    for kind in KINDS:
        head = f'<testcase classname={quoteattr(_clean(report.program))} name="{kind}"'
        inside = _failure(kind, found.get(kind, ())) + _output(warned.get(kind, ()))
        yield f"{head}>{inside}</testcase>\n" if inside else f"{head}/>\n"
    yield "</testsuite>\n"


def _by_kind(findings: Sequence[Finding]) -> dict[FindingKind, list[Finding]]:
    kinds: dict[FindingKind, list[Finding]] = {}
    for each in findings:
        kinds.setdefault(each.kind, []).append(each)
    return kinds


def _failure(kind: FindingKind, found: Sequence[Finding]) -> str:
    if not found:
        return ""
    first = quoteattr(_clean(found[0].message))
    return f'<failure type="{kind}" message={first}>{_text(found)}</failure>'


def _output(warned: Sequence[Finding]) -> str:
    return f"<system-out>{_text(warned, 'warning: ')}</system-out>" if warned else ""


def _text(found: Sequence[Finding], before: str = "") -> str:
    return escape("\n".join(before + _clean(each.message) for each in found))


def _clean(text: str) -> str:
    """The text without characters that XML does not allow."""
    return NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def sarif(reports: Sequence[Report], version: str) -> Iterator[bytes]:
    """SARIF in pieces: one run; a rule per kind, a result per violation or warning, at its line."""
    rules = [
        {"id": kind, "name": kind, "shortDescription": {"text": MEANING[kind]}} for kind in KINDS
    ]
    found = [
        (report.program, each, level)
        for report in reports
        for level, found in (("error", report.violations), ("warning", report.warnings))
        for each in found
    ]
    driver = {"name": "understudy", "version": version, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "results": Listed(found, lambda each: _result(*each)),
    }
    yield f'{{\n "$schema": "{SARIF_SCHEMA}",\n "version": "2.1.0",\n "runs": '.encode()
    for part in indented_list([run]):
        yield part.replace(b"\n", b"\n ")
    yield b"\n}"


def _result(program: str, found: Finding, level: str) -> dict[str, Any]:
    region = {"startLine": max(found.line, 1), "endLine": max(found.last or found.line, 1)}
    place = {"artifactLocation": {"uri": _uri(program)}, "region": region}
    return {
        "ruleId": found.kind,
        "ruleIndex": KINDS.index(found.kind),
        "level": level,
        "message": {"text": found.message},
        "locations": [{"physicalLocation": place}],
        "properties": {"time_s": found.time_s},
    }


def _uri(program: str) -> str:
    """The file name as a URI reference; an absolute path becomes a file: URI."""
    path = program.replace("\\", "/")
    if re.match("[A-Za-z]:/", path):
        return f"file:///{path[:2]}{quote(path[2:], errors='replace')}"
    return ("file://" if path.startswith("/") else "") + quote(path, errors="replace")
