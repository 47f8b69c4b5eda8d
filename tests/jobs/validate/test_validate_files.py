"""JUnit, SARIF and the page: read by others, so checked as others read them."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec import structs
from playwright.sync_api import sync_playwright
from tests.jobs.validate.rehearsals import PROGRAMS, cell, proved

from understudy.jobs.validate import Finding, Report
from understudy.jobs.validate.ci import junit, sarif
from understudy.jobs.validate.page import page
from understudy.jobs.validate.report import KINDS

TEXT: dict[str, Any] = {
    "type": "object", "required": ["text"], "additionalProperties": False,
    "properties": {"text": {"type": "string", "minLength": 1}},
}  # fmt: skip
REGION: dict[str, Any] = {
    "type": "object", "required": ["startLine"], "additionalProperties": False,
    "properties": {name: {"type": "integer", "minimum": 1} for name in ("startLine", "endLine")},
}  # fmt: skip
LOCATION: dict[str, Any] = {
    "type": "object", "required": ["physicalLocation"], "additionalProperties": False,
    "properties": {
        "physicalLocation": {
            "type": "object", "required": ["artifactLocation"], "additionalProperties": False,
            "properties": {
                "artifactLocation": {
                    "type": "object", "required": ["uri"], "additionalProperties": False,
                    "properties": {"uri": {"type": "string", "format": "uri-reference"}},
                },
                "region": REGION,
            },
        }
    },
}  # fmt: skip
SARIF: dict[str, Any] = {
    "type": "object", "required": ["version", "runs"], "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"enum": ["2.1.0"]},
        "runs": {"type": "array", "items": {
            "type": "object", "required": ["tool", "results"], "additionalProperties": False,
            "properties": {
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "tool": {"type": "object", "required": ["driver"], "properties": {"driver": {
                    "type": "object", "required": ["name"], "properties": {
                        "name": {"type": "string"}, "version": {"type": "string"},
                        "rules": {"type": "array", "uniqueItems": True, "items": {
                            "type": "object", "required": ["id"],
                            "properties": {"id": {"type": "string"}, "name": {"type": "string"},
                                           "shortDescription": TEXT},
                        }},
                    },
                }}},
                "results": {"type": "array", "items": {
                    "type": "object", "required": ["message"], "additionalProperties": False,
                    "properties": {
                        "ruleId": {"type": "string"},
                        "ruleIndex": {"type": "integer", "minimum": -1},
                        "level": {"enum": ["none", "note", "warning", "error"]},
                        "message": TEXT,
                        "locations": {"type": "array", "items": LOCATION},
                        "properties": {"type": "object"},
                    },
                }},
            },
        }},
    },
}  # fmt: skip
"""What of the SARIF 2.1.0 schema a validation uses, with its required and allowed keys."""


@pytest.fixture(scope="module")
def flawed() -> Report:
    return proved(PROGRAMS / "flawed" / "wrong_height.gcode")


def test_sarif_has_the_shape_of_its_schema(flawed: Report) -> None:
    odd = replace(flawed, program="über mir\\weld 1.gcode")
    document = json.loads(json.dumps(sarif([flawed, odd], "0.1.0")))
    jsonschema.validate(document, SARIF)
    first, second = document["runs"][0]["results"]
    rules = document["runs"][0]["tool"]["driver"]["rules"]
    assert rules[first["ruleIndex"]]["id"] == first["ruleId"] == "collision"
    place = second["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "%C3%BCber%20mir/weld%201.gcode"
    assert place["region"] == {"startLine": 5, "endLine": 6}


def test_junit_has_a_case_per_kind_and_says_where(flawed: Report) -> None:
    nasty = replace(flawed, violations=(Finding(3, "syntax", 'line 3: <&"\x00> is no word'),))
    first, second = ElementTree.fromstring(junit([flawed, nasty]).encode())
    assert [case.get("name") for case in first] == list(KINDS)
    (failure,) = first.iter("failure")
    assert failure.get("type") == "collision"
    assert failure.text is not None
    assert failure.text.startswith("line 5: torch.nozzle touches fixture")
    assert "is no word" in (next(second.iter("failure")).text or "")


def test_the_page_holds_everything_and_asks_for_nothing(flawed: Report) -> None:
    text = page([flawed], cell("g60_welding").environment())
    assert "http" not in text.replace("http-equiv", "")
    data = text.split('type="application/json">')[1].split("</script>")[0]
    (report,) = json.loads(data)["reports"]
    assert len(report["points"]) == len(report["at"]) == len(report["times"]) > 100
    assert {thing["name"] for thing in json.loads(data)["things"]} == {"floor", "table", "fixture"}


def test_a_comment_cannot_break_out_of_the_page(flawed: Report) -> None:
    line = structs.replace(flawed.lines[0], text="; </script><script>alert(1)</script>")
    text = page([replace(flawed, lines=(line,))], cell("bare").environment())
    assert text.count("<script") == 2


def test_the_page_draws_and_its_lines_can_be_clicked(flawed: Report, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page([flawed], cell("g60_welding").environment()), encoding="utf-8")
    asked: list[str] = []
    broken: list[str] = []
    with sync_playwright() as engine:
        arguments = ["--no-sandbox"]
        browser = engine.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        tab = browser.new_page()
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("pageerror", lambda error: broken.append(str(error)))
        tab.goto(file.as_uri())
        assert tab.inner_text("#verdict") == "fail"
        tab.click("#line6")
        assert tab.evaluate("document.querySelector('tr.chosen').id") == "line6"
        assert tab.evaluate("report.at[frame]") == 6
        red = "pen.getImageData(0, 0, canvas.width, canvas.height).data"
        assert tab.evaluate(f"[...{red}].some(value => value > 0)")
        browser.close()
    assert broken == []
    assert asked == [file.as_uri()]
