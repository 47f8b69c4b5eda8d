"""`python -m tests.robots.grblhal.judge`: compares our machine with the firmware itself.

The firmware is a program that the user has built (UNDERSTUDY_GRBLHAL_SIM). Random sessions are
played to both; of each kind of difference the first is printed, with as few lines as show it.
`--learn` learns the state machines of both instead, and prints the inputs that tell them apart.
`--record` keeps the firmware's answers in a file, `--against` compares with such a file, `--replay`
plays the sessions of such a file to both once more.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.robots.grblhal.judge import learn
from tests.robots.grblhal.judge.compare import Chat, Difference, first_difference, play, shrunk
from tests.robots.grblhal.judge.grammar import SESSION, numbered_session
from tests.robots.grblhal.judge.partners import (
    binary,
    firmware,
    lock_step_binary,
    our_machine,
)

LAST_STEPS = 40
"""Steps that are printed of a session that differs."""


def main() -> int:
    given = _arguments()
    if given.learn:
        return _learn(given)
    if given.record:
        with given.record.open("a") as file:
            for chat in _firmware_chats(given):
                file.write(f"{chat.as_json()}\n")
        return 0
    kinds: Counter[str] = Counter()
    documented: Counter[str] = Counter()
    sessions = steps = 0
    chats = _recorded_chats(given.against, given) if given.against else _firmware_chats(given)
    for number, chat in enumerate(chats, given.first):
        sessions, steps = sessions + 1, steps + len(chat.steps)
        found = first_difference(chat, our_machine)
        if found is None or given.only not in found.kind:
            continue
        if found.documented:
            documented[found.documented] += 1
            continue
        if found.kind not in kinds:
            if given.shrink:
                found = shrunk(found, partial(firmware, binary()), our_machine)
            _show(number, found)
        kinds[found.kind] += 1
    print(f"\n{sessions} sessions, {steps} steps: {kinds.total()} sessions differ")
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    print(f"{documented.total()} end at a difference that remains on purpose")
    for reason, count in documented.most_common():
        print(f"{count:6} {reason}")
    return 1 if kinds else 0


def _learn(given: argparse.Namespace) -> int:
    """0: equal; 1: they differ; 2: the time was not enough."""
    budget = learn.Budget(time.monotonic() + 60.0 * given.minutes)
    judge = partial(firmware, lock_step_binary())
    found = learn.compare(our_machine, judge, tests=given.tests, budget=budget)
    for name, learned in (("ours", found.ours), ("firmware", found.theirs)):
        print(
            f"{name}: {learned.states} states over {len(learn.INPUTS)} inputs,"
            f" {learned.queries} queries, {learned.steps} steps"
        )
    for difference in found.differences:
        print()
        for letter, ours, theirs in zip(*difference, strict=True):
            print(f"  > {letter}\n  firmware: {theirs}")
            if ours != theirs:
                print(f"  ours:     {ours}")
    if given.record:
        with given.record.open("a") as file:
            file.writelines(f"{one.as_chat().as_json()}\n" for one in found.differences)
    if found.differences:
        print(f"\nnot equal: {len(found.differences)} kinds of differences")
        return 1
    if not found.equal:
        steps = found.theirs.steps
        print(
            f"not equal proved: {found.theirs.states} states of the firmware,"
            f" no counterexample in {steps} steps"
        )
        return 2
    print("equal")
    return 0


def _firmware_chats(given: argparse.Namespace) -> Iterator[Chat]:
    """Plays random sessions to the firmware, or the recorded ones of a file once more."""
    judge = partial(firmware, binary())
    if given.replay:
        for chat in _recorded_chats(given.replay, given):
            yield play(chat.steps, judge)
        return
    for number in range(given.first, given.first + given.sessions):
        yield play(numbered_session(number, given.steps), judge)


def _recorded_chats(recording: Path, given: argparse.Namespace) -> Iterator[Chat]:
    with recording.open() as file:
        for number, line in enumerate(file):
            if given.first <= number < given.first + given.sessions:
                yield Chat.from_json(line)


def _show(number: int, found: Difference) -> None:
    print(f"\nsession {number}: {found.kind}")
    for step in found.steps[-LAST_STEPS:]:
        print(f"  > {step!r}")
    for name, lines in (("firmware", found.expected), ("ours", found.actual)):
        print(f"  {name}: {list(lines)[:6]}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--steps", type=int, default=SESSION)
    parser.add_argument("--first", type=int, default=0, help="number of the first session")
    parser.add_argument("--learn", action="store_true", help="learn and compare state machines")
    parser.add_argument("--minutes", type=float, default=60.0, help="time of --learn")
    parser.add_argument("--tests", type=int, default=1000, help="random words of --learn")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    parser.add_argument("--only", default="", help="only kinds that contain this text")
    parser.add_argument("--record", type=Path, help="append the firmware's answers to this file")
    parser.add_argument("--against", type=Path, help="compare with the answers of this file")
    parser.add_argument("--replay", type=Path, help="play the sessions of this file to both")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
