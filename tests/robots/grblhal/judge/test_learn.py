"""The state machine of the face is learned, and a changed answer is found."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from aalpy import bisimilar
from tests.robots.grblhal.face.sessions import Wire
from tests.robots.grblhal.judge.compare import Chat
from tests.robots.grblhal.judge.learn import (
    INPUTS,
    Budget,
    Controller,
    compare,
    learn,
)
from tests.robots.grblhal.judge.partners import our_machine

FEW = ("move", "hold", "start", "reset")
LEARNED = Path(__file__).parents[3] / "golden" / "grblhal_learned" / "door_in_jog.jsonl"
NAMES = {data: name for name, data in INPUTS.items()}


@contextmanager
def other_error() -> Iterator[Wire]:
    """Our machine with another number of the error in an alarm."""
    with our_machine() as wire:
        received = wire._received
        with patch.object(
            wire, "_received", lambda data: received(data.replace(b"error:9\r", b"error:8\r"))
        ):
            yield wire


def test_learning_twice_gives_the_same_machine() -> None:
    first, second = (learn(our_machine, FEW, tests=20, seed=seed) for seed in range(2))
    assert first.complete
    assert first.states > len(FEW)
    assert bisimilar(first.machine, second.machine)


def test_a_changed_answer_is_found_and_named() -> None:
    found = compare(our_machine, other_error, FEW, tests=20)
    assert not found.equal
    shortest = found.differences[0]
    assert shortest.word == ("move", "reset", "move")
    assert shortest.ours[-1].startswith("error:9 Alarm")
    assert shortest.theirs[-1].startswith("error:8 Alarm")


def test_a_machine_that_is_not_learned_in_time_is_not_called_equal() -> None:
    found = compare(our_machine, our_machine, FEW, tests=20, budget=Budget(steps=40))
    assert not found.differences
    assert not found.equal


@pytest.mark.parametrize("text", LEARNED.read_text().splitlines())
def test_the_machine_answers_a_word_as_the_firmware_did(text: str) -> None:
    chat = Chat.from_json(text)
    controller = Controller(our_machine)
    answers = controller.answers(NAMES[step] for step in chat.steps)
    controller.close()
    assert [[answer] for answer in answers] == chat.answers
