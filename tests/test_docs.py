"""What the documents say is what the code does."""

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests import llms

from understudy.app.build import load_cell
from understudy.cli import check_words, load
from understudy.cli.options import with_values
from understudy.jobs.modes import manager as modes
from understudy.operator.clock import ClockCommands
from understudy.protocol import client
from understudy.registry import TABLES, cli_rows
from understudy.robots.kuka import robot as kuka
from understudy.robots.text_robot import robot as text_robot
from understudy.simulation.scenario import declared_faults

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
AT_THE_ROOT = [
    ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
]
PAGES = [*AT_THE_ROOT, *sorted((ROOT / "docs").rglob("*.md"))]


STATE_MACHINES: list[tuple[str, Mapping[tuple[Any, str], Any]]] = [
    ("docs/jobs/modes.md", modes.TRANSITIONS),
    ("docs/robots/kuka.md", kuka.TRANSITIONS),
    ("docs/robots/text_robot.md", client.TRANSITIONS),
    ("docs/robots/text_robot.md", text_robot.TRANSITIONS),
]


def diagram(transitions: Mapping[tuple[Any, str], Any]) -> str:
    arrows = (f"    {a} --> {b}: {event}\n" for (a, event), b in transitions.items())
    return "```mermaid\nstateDiagram-v2\n" + "".join(arrows) + "```\n"


@pytest.mark.parametrize(("page", "transitions"), STATE_MACHINES)
def test_the_state_diagram_is_the_table(
    page: str, transitions: Mapping[tuple[Any, str], Any]
) -> None:
    assert diagram(transitions) in (ROOT / page).read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def anchor(title: str) -> str:
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings_lead_to_one(page: Path) -> None:
    for target, heading in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        text = (page.parent / target).read_text() if target else page.read_text()
        anchors = [anchor(title) for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
        assert heading in anchors, f"{target}#{heading}"


@pytest.mark.parametrize("name", ["CHANGELOG.md", "SECURITY.md"])
def test_no_entry_stands_twice(name: str) -> None:
    """Rows by their first cell: two limits of one thing would contradict each other."""
    entries = re.findall(r"^(?:### .*|- .*|\| [^|]+\|)", (ROOT / name).read_text(), re.MULTILINE)
    repeated = {entry for entry in entries if entries.count(entry) > 1}
    assert not repeated, f"{name}: delete one of each: {sorted(repeated)}"


def test_the_index_names_every_page() -> None:
    docs = ROOT / "docs"
    index = (docs / "README.md").read_text()
    pages = [str(page.relative_to(docs)) for page in docs.rglob("*.md")]
    others = [page for page in pages if page != "README.md" and not page.startswith("decisions/")]
    assert [page for page in others if f"({page})" not in index] == []


def test_every_face_has_a_page() -> None:
    for face, module in TABLES["faces"].items():
        folder = "/".join(module.split(".")[1:3])  # robots/kuka of understudy.robots.kuka.face
        own = (ROOT / f"docs/{folder}.md").exists()
        assert own or any(page.stem == face for page in PAGES), face


def test_the_index_of_decisions_lists_them_all() -> None:
    folder = ROOT / "docs/decisions"
    index = (folder / "README.md").read_text()
    for page in folder.glob("*.md"):
        if page.name == "README.md":
            continue
        for title in re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE):
            assert f"- [{title}]({page.name}#{anchor(title)})" in index


def shell_lines(text: str) -> list[list[str]]:
    """The command lines of `understudy` in the shell blocks of a page, as words behind its name."""
    shell = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    found = re.findall(r"(?m)(?:^|; )understudy ([^-;\n][^;\n]*)", shell)
    return [shlex.split(line, comments=True) for line in found]


@pytest.mark.parametrize("page", ["README.md", "docs/cli.md"])
def test_the_commands_of_a_page_are_accepted(page: str) -> None:
    """Names, options and arguments; of a command with commands of its own, theirs too."""
    lines = shell_lines((ROOT / page).read_text())
    assert lines
    for name, *words in lines:
        command, words = load(name), with_values(words)
        check_words(f"understudy {name}", command, words)
        if hasattr(command, "commands"):
            command, words = command.commands[words[0]], words[1:]
        command.make_context(name, words)


def test_every_command_is_on_the_page_of_commands_with_its_example() -> None:
    page = (ROOT / "docs/cli.md").read_text()
    lines = shell_lines(page)
    assert [each for each in cli_rows().values() if each.example.split() not in lines] == []
    headings = " ".join(re.findall(r"(?m)^### (.*)$", page))
    assert [name for name in cli_rows() if f"`{name}`" not in headings] == []


def command_rows() -> Iterator[str]:
    """A row for each command, those of groups too, with what its help shows."""
    for name in cli_rows():
        command = load(name)
        for each in getattr(command, "commands", {name: command}).values():
            called = name if each is command else f"{name} {each.name}"
            shown = [option for option in each.params if not getattr(option, "hidden", False)]
            arguments = [p for p in shown if p.param_type_name == "argument"]
            options = [p for p in shown if p.param_type_name == "option"]
            texts = [(p.metavar or p.name.upper()).replace("|", "\\|") for p in arguments]
            names = [max(p.opts, key=len) for p in options]
            left = f"`{' '.join([called, *texts])}`"
            own = [f"`{n}`" for n in names if n not in ("--quiet", "--verbose")]
            yield f"| {left} | {' '.join(own) or '–'} |"


def test_the_page_of_commands_has_the_options_of_their_help() -> None:
    """If it fails: put these rows into docs/cli.md, below the comment `options`."""
    page = (ROOT / "docs/cli.md").read_text()
    table = page.partition("<!-- options -->\n")[2].strip().splitlines()
    assert table[2:] == list(command_rows())


def test_the_first_sample_is_what_the_default_cell_answers() -> None:
    sent = re.search(r"sendall\(b'(.*)'\)", README)
    answered = re.search(r"```\n(OK .*?\n)```", README, re.DOTALL)
    assert sent
    assert answered
    cell = load_cell("default")
    client = cell.connect("bench.text_tcp")
    client.say(sent[1].replace("\\n", "\n").encode())
    cell.run_while_owed()
    assert client.received().decode() == answered[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_of_the_source_are_there(page: Path) -> None:
    text, source = page.read_text(), ROOT / "src/understudy"
    rooms = {each.name for each in source.iterdir() if each.is_dir()}
    files = re.findall(r"`([\w/]+/[\w*]+\.(?:py|js))`", text)
    folders = [path for path in re.findall(r"`(\w+/[\w/]*)/`", text) if path.split("/")[0] in rooms]
    named = [*files, *folders]
    assert [each for each in named if not [*source.glob(each), *ROOT.glob(each)]] == []


def test_the_tour_has_every_layer() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (layers,) = [
        contract["layers"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers" and contract["containers"] == ["understudy"]
    ]
    shown = (ROOT / "docs/tour.md").read_text().partition("## Layers")[2].split("```")[1]
    named = set(shown.split())
    assert [name for row in layers for name in re.findall(r"\w+", row) if name not in named] == [
        "__main__"
    ]


def test_no_document_has_two_chapters() -> None:
    page = (ROOT / "docs/from-the-design-documents.md").read_text()
    chapters = re.findall(r"^## .*", page, re.MULTILINE)
    assert len(chapters) == len(set(chapters))
    rows = re.findall(r"^\| (.*?) \|", page, re.MULTILINE)
    words = [row for row in rows if row != "document"]
    assert len(words) == len(set(words))


def test_every_command_of_the_desk_and_every_fault_has_its_line() -> None:
    scenario = (ROOT / "docs/simulation/scenario.md").read_text()
    control = (ROOT / "docs/operator/control.md").read_text()
    assert [fault for fault in declared_faults() if f"`{fault}`" not in scenario] == []
    commands = [
        name for name, each in vars(ClockCommands).items() if hasattr(each, "command_marks")
    ]
    assert len(commands) == 16
    assert [name for name in commands if f"`{name}`" not in control] == []


def test_the_python_api_page_runs_as_it_stands() -> None:
    text = (ROOT / "docs" / "python_api.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        exec(compile(block, "docs/python_api.md", "exec"), {})


def test_the_index_for_language_models_is_current() -> None:
    assert llms.FILE.read_text() == llms.text(), "write it anew: python -m tests.llms"
