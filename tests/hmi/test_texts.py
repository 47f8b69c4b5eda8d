"""Texts of all pages, in every language."""

import ast
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Formatter

import pytest
import yaml

from understudy.devices.camera.camera import FAULT_WORDS
from understudy.devices.welder import REASONS as WELD_REASONS
from understudy.hmi.page import Page, Panel, pages, panels
from understudy.hmi.texts import CELL, LANGUAGES, Texts, cell_text, dictionary
from understudy.registry import modules

HMI = Path(str(files("understudy.hmi")))


def test_texts_have_the_same_fields_in_every_language() -> None:
    """One test looks at all texts: a test per text costs much more time than the text."""
    different = [key for key, texts in dictionary().items() if not _alike(texts)]
    assert different == []


def _alike(texts: Mapping[str, str]) -> bool:
    """Whether there is a text in every language, and the fields of all are the same."""
    fields = {_fields(text) for text in texts.values()}
    return set(texts) - {CELL} == set(LANGUAGES) and all(texts.values()) and len(fields) == 1


def test_every_text_that_the_pages_use_exists() -> None:
    code = "\n".join(path.read_text() for path in HMI.rglob("*.py"))
    used = set(re.findall(r'texts\("([\w.]+)"\)', code))
    assert used
    assert used <= set(dictionary())


SCRIPT_TEXT = re.compile(r'\btext\("([\w ]+)"')


def test_every_text_that_the_scripts_of_a_page_use_exists() -> None:
    """A key without a text would be shown as it is, in every language. The program page puts the
    name of a section before its keys."""
    used, missing = 0, []
    declared: tuple[Page | Panel, ...] = (*pages(), *panels())
    for each in declared:
        code = "\n".join(path.read_text() for path in each.folder.rglob("*.js"))
        sections = yaml.safe_load((each.folder / each.texts).read_text())
        known = {key for texts in sections.values() for key in texts}
        known |= {f"{name}_{key}" for name, texts in sections.items() for key in texts}
        found = set(SCRIPT_TEXT.findall(code))
        used += len(found)
        missing += [f"{each.name}: {key}" for key in found - known]
    assert missing == []
    assert used > 60


def test_every_refusal_that_is_translated_is_one_that_the_cell_sends() -> None:
    phrases = {
        key: re.sub(r"\{\w+\}", "{}", cell_text(text))
        for key, text in dictionary().items()
        if key.startswith("refusal.")
    }
    assert len(phrases) > 400
    never_sent = [
        key for key, phrase in phrases.items() if not any(phrase in text for text in _literals())
    ]
    assert never_sent == []


NOT_ON_PAGES = (
    "cli/",
    "doors/foxglove/",
    "doors/mcp/",
    "doors/messages.py",
    "doors/rosbridge/",
    "doors/websocket.py",
    "robots/mobile/vda5050/",
    "vision/script_bridge.py",
)
"""Refusals of these go to clients of other doors, brokers and scripts."""
PROTOCOL_WORD = re.compile(r"^[A-Z][A-Z_]+$|^[A-Z][A-Z_]+: (\{\}|by task\.cancel)$")
"""Codes of the protocols of mobile robots, which every page shows as they are."""
WORDS = re.compile(r"[a-z]{2,}")
BARE_FIELDS = frozenset(
    [
        "{} ({} of the path)",
        "{} of {}",
        "{}: {} s left",
        "{}: device {}; there are: {}",
        "{}: motorId {}; known: {}",
        "{}: targetPosition {}; allowed: {}",
        "line {}: {} ({})",
        "line {}: {} takes {}, not {}",
        "move {} of {}: {}",
        "{}: {}; parameters: {}",
        "error:{} ({})",
        "error:{} ({}): {}",
        "{} has no {}; {}",
        "steps.{} ({}): {}",
        "INVALID_TASK: moveToPoint: {}",
        "there is no tool {}; {}",
    ]
)
"""Sentences that consist of names and of other sentences, which have translations of their own."""


def _refusals() -> dict[str, str]:
    """What the cell refuses with, by the place where it is written; fields are {}."""
    found: dict[str, str] = {}
    root = HMI.parent
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if HMI in path.parents or name.startswith(NOT_ON_PAGES):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name(id="Refused"), args=[first, *_]):
                    text = _text_of(first)
                    if text is not None:
                        found[f"{name}:{node.lineno}"] = text
    return found


def _text_of(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            values = (getattr(part, "value", "") for part in parts)
            return "".join(each if isinstance(each, str) else "{}" for each in values)
    return None


def test_every_refusal_that_a_page_can_show_is_translated() -> None:
    """A sentence counts as translated if one of its phrases is."""
    vietnamese, refusals = Texts("vi"), _refusals()
    assert len(refusals) > 400
    missing = [
        f"{place}: {text}"
        for place, text in refusals.items()
        if WORDS.search(text)
        and not PROTOCOL_WORD.match(text)
        and text not in BARE_FIELDS
        and vietnamese.of_cell(text.replace("{}", "X9")) == text.replace("{}", "X9")
    ]
    assert missing == [], "add them to the section `refusal` of a texts.yaml"


ALARMS = ("active_faults", "problem")
"""Functions of devices that return the words of their alarms."""
MODES = ("failed",)


def _alarms() -> set[str]:
    found = {*FAULT_WORDS.values(), *WELD_REASONS.values()}
    for path in (HMI.parent / "devices").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name in ALARMS:
                parts = {
                    id(v) for n in ast.walk(node) if isinstance(n, ast.JoinedStr) for v in n.values
                }
                texts = (
                    _text_of(n)
                    for n in ast.walk(node)
                    if isinstance(n, ast.expr) and id(n) not in parts
                )
                docs = ast.get_docstring(node, clean=False)
                found |= {text for text in texts if text and text not in (docs, *MODES)}
    return found


def test_every_alarm_of_a_device_is_translated() -> None:
    vietnamese, alarms = Texts("vi"), {text.replace("{}", "X9") for text in _alarms()}
    alarms = {text for text in alarms if WORDS.search(text)}
    assert len(alarms) > 20
    assert {text for text in alarms if vietnamese.of_cell(text) == text} == set()


COMMAND_NAME = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
JOBS = ("pick_place", "calibration")


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_of_the_jobs_name_buttons_and_no_commands(language: str) -> None:
    texts = Texts(language)
    shown = [text for page in JOBS for text in texts.section(page).values()]
    shown += texts.section("refusal").values()
    named = {word for text in shown for word in COMMAND_NAME.findall(text)}
    assert {"reset_pallet", "reset_pick_place"} <= _commands()
    assert named & _commands() == set()


def _commands() -> set[str]:
    """The names of the commands of the capabilities and of every cell."""
    return {
        name
        for _, _, module in modules("commands")
        for each in vars(module).values()
        if isinstance(each, type)
        for name, method in vars(each).items()
        if hasattr(method, "command_marks")
    }


@cache
def _literals() -> list[str]:
    """Every text in the source; the fields of an f-string are {}."""
    found = []
    for path in HMI.parent.rglob("*.py"):
        if HMI in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.JoinedStr():
                    parts = (getattr(part, "value", "") for part in node.values)
                    found.append("".join(p if isinstance(p, str) else "{}" for p in parts))
                case ast.Constant(value=str(text)):
                    found.append(text)
    return found


def test_an_unknown_language_is_english_and_an_unknown_name_stays() -> None:
    texts = Texts("tlh")
    assert texts("frame.reset") == "Reset"
    assert texts.of("state", "Qapla") == "Qapla"
    assert Texts("vi").of("state", "Idle") == "Sẵn sàng"


def _fields(text: str) -> frozenset[str | None]:
    return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)


@pytest.mark.parametrize(
    ("sentence", "vi"),
    [
        ("emergency stop: reset first", "dừng khẩn cấp: hãy đặt lại trước"),
        ("0 of 24 corners of the board are seen", "thấy 0 trên 24 góc của tấm mẫu"),
        ("X1: emergency stop: reset first; x", "X1: dừng khẩn cấp: hãy đặt lại trước; x"),
        ("stopped in RETRACT_PICK", "đã dừng ở RETRACT_PICK"),
        ("motor fault of J2: reset first", "lỗi động cơ J2: hãy đặt lại trước"),
        ("a sentence that is not known (1+1) {x}", "a sentence that is not known (1+1) {x}"),
        ("", ""),
    ],
)  # fmt: skip
def test_known_phrases_in_a_sentence_of_the_cell_are_translated(sentence: str, vi: str) -> None:
    assert Texts("vi").of_cell(sentence) == vi
    assert Texts("en").of_cell(sentence) == sentence


def test_sentences_of_the_cell_name_buttons_on_the_page() -> None:
    sent = "pick & place has a fault: reset it first (reset_pick_place)"
    assert Texts("en").of_cell(sent) == "pick & place has a fault: press RESET first"


def test_every_fault_that_an_operator_can_inject_has_a_name_and_words_in_every_language() -> None:
    texts = Texts("vi")
    brought: dict[str, str] = {}
    for _, _, module in modules("robots", "devices", "faces", "wires"):
        faults = getattr(module, "FAULTS", {})
        brought |= {name: each.doc for name, each in faults.items() if each.how == "brought"}
    assert len(brought) > 30
    assert [name for name in brought if texts.of("fault", name) == name] == []
    assert [doc for doc in brought.values() if texts.translated("fault_doc", doc) == doc] == []
