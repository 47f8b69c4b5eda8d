"""Sessions that the firmware answered, played to our machine on virtual time."""

from pathlib import Path

import pytest
from tests.robots.grblhal.judge.compare import Chat, first_difference
from tests.robots.grblhal.judge.partners import our_machine

FOLDER = Path(__file__).parents[3] / "golden" / "grblhal_judge"
CHATS = {
    f"{path.stem}:{number}": line
    for path in sorted(FOLDER.glob("*.jsonl"))
    for number, line in enumerate(path.read_text().splitlines(), 1)
}


@pytest.mark.parametrize("chat", CHATS.values(), ids=CHATS.keys())
def test_the_machine_answers_as_the_firmware_did(chat: str) -> None:
    difference = first_difference(Chat.from_json(chat), our_machine)
    assert difference is None, (difference.steps[-1], *difference.lines)


def test_chats_are_recorded() -> None:
    assert CHATS
