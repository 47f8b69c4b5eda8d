"""What the documents say is what the code does."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.app import FACES
from understudy.cell.point import TRANSITIONS
from understudy.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def diagram(transitions: dict[tuple[str, str], str]) -> str:
    arrows = (f"    {a} --> {b}: {event}\n" for (a, event), b in transitions.items())
    return "stateDiagram-v2\n" + "".join(arrows)


def test_the_state_diagram_is_the_table() -> None:
    assert diagram(dict(TRANSITIONS)) in (ROOT / "docs/faces/text_tcp.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_face_has_a_page() -> None:
    for face in FACES:
        assert (ROOT / f"docs/faces/{face}.md").exists()


def test_every_command_in_the_readme_exists() -> None:
    help_text = CliRunner().invoke(app, ["--help"]).output
    for command in re.findall(r"understudy (\w+)", (ROOT / "README.md").read_text()):
        assert command in help_text or command in ("cell",), command
