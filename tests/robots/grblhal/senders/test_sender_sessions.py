"""Real senders at the machine's serial port, and their recorded sessions without them."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from tests.robots.grblhal.face.sessions import Step, outgoing
from tests.robots.grblhal.senders.machine import CELL
from tests.robots.grblhal.senders.session import SENDERS, program_lines, record
from tests.robots.grblhal.senders.steps import differences_of

from understudy.app.build import load_cell
from understudy.wire.chat import Chat
from understudy.wire.compare import Tolerance
from understudy.wire.play import play

GOLDEN = Path(__file__).parents[3] / "golden" / "grblhal_senders"
LINES = 1000
REAL_TIME = re.compile(rb"[?!~\x18\x80-\xff]")


def as_sent(steps: Iterable[Step]) -> Iterator[Step]:
    yield from steps


def byte_by_byte(steps: Iterable[Step]) -> Iterator[Step]:
    """The same bytes one at a time; the answers are waited for after the last one."""
    for step in steps:
        *first, last = [outgoing(step)[n : n + 1] for n in range(len(outgoing(step)))] or [b""]
        yield from ({"hex": piece.hex(), "got": []} for piece in first)
        yield {**{key: value for key, value in step.items() if key != "send"}, "hex": last.hex()}


@pytest.mark.parametrize("cut", [as_sent, byte_by_byte])
@pytest.mark.parametrize("name", SENDERS)
def test_recorded_session(name: str, cut: Callable[[Iterable[Step]], Iterable[Step]]) -> None:
    assert differences_of(cut(json.loads((GOLDEN / f"{name}.json").read_text()))) == []


@pytest.mark.parametrize("name", SENDERS)
def test_a_difference_is_found(name: str) -> None:
    text = (GOLDEN / f"{name}.json").read_text()
    longer_jog = json.loads(text.replace("G91 X-30", "G91 X-31"))
    assert "expected '<Idle|MPos:-31.000," in differences_of(longer_jog)[0]


def sent_lines(chat: Chat) -> list[str]:
    data = b"".join(event.data for event in chat.events if event.kind == ">")
    return [plain(line) for line in REAL_TIME.sub(b"", data).decode().split("\n")]


def plain(line: str) -> str:
    """A line without spaces, its numbers in their shortest form, as some senders write them."""
    return re.sub(r"-?[\d.]+", lambda found: f"{float(found[0]) + 0.0:g}", line.replace(" ", ""))


@pytest.mark.soak
@pytest.mark.parametrize("name", SENDERS)
def test_session_of_the_real_sender(name: str, tmp_path: Path) -> None:
    """Every line of the program arrives; in process the answers at these times are the same."""
    chat = record(SENDERS[name], tmp_path, LINES)
    received = iter(sent_lines(chat))
    missing = [line for line in map(plain, program_lines(LINES)) if line not in received]
    assert missing == []
    difference = play(chat, load_cell(CELL), tolerance=Tolerance(seconds=None))
    assert difference is None, str(difference)
