"""JUnit, SARIF and HTML reports, checked by their schemas and in a browser."""

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from playwright.sync_api import sync_playwright
from tests.offline.validate.cases import PROGRAMS, cell, proved

from understudy.app.validate import figures_of, subject_of, validate_text
from understudy.html_page import Origin
from understudy.offline.robot import Arm
from understudy.offline.validate import ci
from understudy.offline.validate.html_report import MOST_TRIANGLES, page, simplified
from understudy.offline.validate.report import KINDS, Finding, Report

SCHEMA = json.loads((PROGRAMS.parents[2] / "golden/sarif/sarif-schema-2.1.0.json").read_text())
FORMATS = jsonschema.FormatChecker(formats=())
WHERE = ("locations", 0, "physicalLocation")
"""Of a result."""
FIGURES = figures_of(cell("g60_welding"))


@FORMATS.checks("uri-reference")
@FORMATS.checks("uri")
def _of_allowed_characters(text: object) -> bool:
    """RFC 3986: unreserved, reserved, or percent and two digits."""
    allowed = r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*"
    return re.fullmatch(allowed, str(text)) is not None


def complaints(document: Any) -> list[str]:
    """The errors of a SARIF document by the schema."""
    validator = jsonschema.Draft7Validator(SCHEMA, format_checker=FORMATS)
    return [problem.message for problem in validator.iter_errors(document)]


def sarif(reports: Sequence[Report]) -> Any:
    return json.loads(b"".join(ci.sarif(reports, "0.1.0")))


def junit(reports: Sequence[Report]) -> bytes:
    return "".join(ci.junit(reports)).encode()


@pytest.fixture(scope="module")
def flawed() -> Report:
    return proved(PROGRAMS / "flawed" / "wrong_height.gcode")


def test_sarif_is_valid_by_the_schema_of_its_standard(flawed: Report) -> None:
    odd = replace(flawed, program="über mir\\weld 1.gcode")
    document = sarif([flawed, odd])
    assert complaints(document) == []
    first, second = document["runs"][0]["results"]
    rules = document["runs"][0]["tool"]["driver"]["rules"]
    assert rules[first["ruleIndex"]]["id"] == first["ruleId"] == "collision"
    place = second["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "%C3%BCber%20mir/weld%201.gcode"
    assert place["region"] == {"startLine": 5, "endLine": 6}


ANY_TEXT = st.text(st.characters(codec="utf-8"))
"""Control characters among them; names and programs are read without surrogates."""
FINDINGS = st.builds(
    Finding,
    line=st.integers(0, 10**9),
    kind=st.sampled_from(KINDS),
    message=ANY_TEXT,
    time_s=st.floats(0, 1e9),
    last=st.none() | st.integers(0, 10**9),
)


@given(program=ANY_TEXT, found=st.lists(FINDINGS, max_size=3))
def test_any_finding_gives_valid_sarif_and_junit(
    flawed: Report, program: str, found: list[Finding]
) -> None:
    reported = replace(flawed, program=program, violations=tuple(found), warnings=tuple(found))
    assert complaints(sarif([reported, flawed])) == []
    assert len(ElementTree.fromstring(junit([reported, flawed]))) == 2


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        ((), "level", "fatal"),
        ((), "message", {}),
        ((), "line", 5),
        ((), "ruleIndex", -2),
        ((*WHERE, "region"), "startLine", 0),
        ((*WHERE, "artifactLocation"), "uri", "weld 1.gcode"),
    ],
)
def test_the_schema_refuses_wrong_values(
    flawed: Report, place: tuple[str | int, ...], key: str, value: object
) -> None:
    document = sarif([flawed])
    spoilt: Any = document["runs"][0]["results"][0]
    for step in place:
        spoilt = spoilt[step]
    spoilt[key] = value
    assert complaints(document)


@pytest.mark.parametrize(
    ("program", "uri"),
    [
        ("weld.gcode", "weld.gcode"),
        ("a/b c.nc", "a/b%20c.nc"),
        ("/srv/weld.nc", "file:///srv/weld.nc"),
        ("C:\\jobs\\weld.nc", "file:///C:/jobs/weld.nc"),
    ],
)
def test_the_name_of_a_program_becomes_a_uri(flawed: Report, program: str, uri: str) -> None:
    (run,) = sarif([replace(flawed, program=program)])["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == uri


def test_junit_has_a_case_per_kind_and_the_line(flawed: Report) -> None:
    nasty = replace(flawed, violations=(Finding(3, "syntax", 'line 3: <&"\x00> is no word'),))
    first, second = ElementTree.fromstring(junit([flawed, nasty]))
    assert [case.get("name") for case in first] == list(KINDS)
    (failure,) = first.iter("failure")
    assert failure.get("type") == "collision"
    assert failure.text is not None
    assert failure.text.startswith("line 5: torch.nozzle touches fixture")
    assert "is no word" in (next(second.iter("failure")).text or "")


def test_junit_has_warnings_as_the_output_of_passed_cases(flawed: Report) -> None:
    warned = replace(flawed, violations=(), warnings=(Finding(7, "velocity", "line 7: <fast>"),))
    (suite,) = ElementTree.fromstring(junit([warned]))
    assert suite.get("failures") == "0"
    (case,) = (case for case in suite if len(case))
    assert (case.get("name"), case[0].tag) == ("velocity", "system-out")
    assert case[0].text == "warning: line 7: <fast>"


def test_the_page_is_self_contained(flawed: Report) -> None:
    text = page([flawed], cell("g60_welding").environment(), FIGURES)
    assert "http" not in text.replace("http-equiv", "")
    data = text.split('type="application/json">')[1].split("</script>")[0]
    (report,) = json.loads(data)["reports"]
    assert (
        len(report["tips"])
        == len(report["joints"])
        == len(report["at"])
        == len(report["times"])
        > 100
    )
    assert {thing["name"] for thing in json.loads(data)["things"]} == {"floor", "table", "fixture"}


def test_a_comment_cannot_break_out_of_the_page(flawed: Report) -> None:
    line = structs.replace(flawed.lines[0], text="; </script><script>alert(1)</script>")
    text = page(
        [replace(flawed, lines=(line,))], cell("bare").environment(), figures_of(cell("bare"))
    )
    assert text.count("<script") == 2


def test_the_view_fits_small_and_large_motions(flawed: Report, tmp_path: Path) -> None:
    """For a machine that mills a centimetre and for an arm, on a wide and on a narrow window."""
    small = validate_text("G21 G90\nG0 X10\nG1 Y10 F300\n", cell("grblhal_6axis"))
    file = tmp_path / "report.html"
    mill = figures_of(cell("grblhal_6axis"))

    def figures(robot: str, tool: int) -> dict[str, Any] | None:
        return (mill if robot == "machine" else FIGURES)(robot, tool)

    file.write_text(
        page([small, flawed], cell("g60_welding").environment(), figures), encoding="utf-8"
    )
    with sync_playwright() as engine:
        browser = engine.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )  # fmt: skip
        tab = browser.new_page(viewport={"width": 1000, "height": 700})
        tab.goto(file.as_uri())
        assert tab.evaluate("eye.size") == pytest.approx(1.4 * 0.01 * 2**0.5, abs=0.01)
        tab.select_option("#program", "1")
        assert 1.0 < tab.evaluate("eye.size") < 3.0
        beside = tab.evaluate("canvas.getBoundingClientRect().width")
        tab.set_viewport_size({"width": 420, "height": 800})
        assert tab.evaluate("canvas.getBoundingClientRect().width") == 420 < beside
        assert tab.evaluate("document.body.scrollWidth") == 420
        browser.close()


PLAY_AND_PAUSE = """async () => {
    const [button, before] = [document.querySelector("#play"), frame];
    button.click();
    while (frame <= before) await new Promise(requestAnimationFrame);
    button.click();
}"""
"""Inside the page: on a busy machine a click from outside may come after the end of the program."""


RED_PIXELS = """(() => {
    const of = k => picture.data.subarray(4 * k, 4 * k + 3);
    let count = 0;
    for (let k = 0; k < pixels.length; k++)
        if (pixels[k]) { const [r, g, b] = of(k); count += r > 80 && g < 0.3 * r && b < 0.3 * r; }
    return count;
})()"""
PAINTED = "pixels.reduce((count, each) => count + (each !== 0), 0)"
"""Of the picture of the bodies, without the path and other lines."""


def test_the_head_of_the_page_says_where_it_comes_from(flawed: Report) -> None:
    origin = Origin("g60_welding", "understudy validate <x>", "2026-01-02 03:04 UTC", "9.8")
    text = page([flawed], cell("g60_welding").environment(), FIGURES, origin)
    head = text.partition("<header>")[2].partition("</header>")[0]
    assert "<h1>Validation</h1>" in head
    assert "cell g60_welding · 2026-01-02 03:04 UTC · Understudy 9.8" in head
    assert "<code>understudy validate &lt;x&gt;</code>" in head
    assert f"<title>Validation: {flawed.program}</title>" in text
    plain = page([flawed], cell("g60_welding").environment(), FIGURES)
    assert plain == page([flawed], cell("g60_welding").environment(), FIGURES)
    assert "origin" not in plain.partition("<header>")[2].partition("</header>")[0]


def test_the_page_draws_and_its_lines_can_be_clicked(flawed: Report, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page([flawed], cell("g60_welding").environment(), FIGURES), encoding="utf-8")
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
        faces = tab.evaluate("Number(canvas.dataset.faces)")
        assert faces > 500, "links and tool are drawn as bodies"
        assert tab.is_hidden("#notes li"), "notes are folded"
        count = len(flawed.notes) + len(flawed.left_out_notes())
        assert tab.inner_text("#notes summary") == f"{count} notes"
        tab.click("#findings li")
        assert tab.evaluate("[...touching(report.at[frame])]") == ["torch.nozzle", "fixture"]
        nozzle, solid = tab.evaluate(RED_PIXELS), tab.evaluate(PAINTED)
        tab.uncheck("#solid")
        assert 0 < tab.evaluate(RED_PIXELS) < nozzle, "nozzle and fixture are red, then the nozzle"
        assert tab.evaluate(PAINTED) < 0.5 * solid, "the environment is solid"
        tab.check("#solid")
        tab.click("#line4")
        tab.evaluate("at(0)")
        assert tab.evaluate("[...touching(report.at[frame])]") == []
        assert tab.evaluate(RED_PIXELS) < nozzle
        tab.click("#findings li")
        tab.evaluate(PLAY_AND_PAUSE)
        assert tab.evaluate("playing") is None
        browser.close()
    assert len(file.read_bytes()) < 1_500_000
    assert broken == []
    assert asked == [file.as_uri()]


def test_the_bodies_of_the_page_are_where_the_robot_has_them(flawed: Report) -> None:
    """The page's own kinematics, run in the browser, against the flange and the tool tip."""
    arm = subject_of("", cell("g60_welding"), "g60").arm(1)
    assert isinstance(arm, Arm)
    text = page([flawed], cell("g60_welding").environment(), FIGURES)
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        tab = browser.new_page()
        tab.set_content(text)
        figure = "figures[`${report.robot}/1`]"
        for k in (0, len(flawed.course.joints) // 2, len(flawed.course.joints) - 1):
            last = tab.evaluate(f"frames({figure}, report.joints[{k}]).at(-1)")
            wanted = arm.foot @ arm.chain.flange(np.array(flawed.course.joints[k]))
            assert np.array(last).reshape(4, 4) == pytest.approx(wanted, abs=1e-4)
        browser.close()


def test_a_fine_mesh_is_simplified() -> None:
    grid = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 60)] * 2), axis=-1).reshape(-1, 2)
    corners = np.column_stack([grid, np.sin(3 * grid[:, 0])])
    k = np.arange(60 * 59).reshape(59, 60)[:, :-1].reshape(-1)
    faces = np.concatenate([np.stack([k, k + 1, k + 60], 1), np.stack([k + 1, k + 61, k + 60], 1)])
    few, coarse = simplified(corners, faces)
    assert 300 < len(coarse) <= MOST_TRIANGLES < len(faces)
    assert np.ptp(few, axis=0) == pytest.approx(np.ptp(corners, axis=0), abs=0.1)
