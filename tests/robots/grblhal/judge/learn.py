"""Learns the state machine of a grblHAL controller, and compares two of them.

A controller is a Mealy machine over the inputs below: an answer is its lines without positions and
the state at rest. A line is sent only when the one before it is answered, as senders do; otherwise
the lines that wait would make the number of states endless. Moves and dwells last for 5 s of
simulated time, an input for less than a second: only `time passes` ends them.
"""

import math
import random
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

from aalpy import MealyMachine, bisimilar
from aalpy.base import SUL, Oracle
from aalpy.learning_algs import run_Lsharp
from aalpy.oracles import RandomWpMethodEqOracle
from tests.robots.grblhal.face.sessions import ANSWER, FULL_STATUS, NO_ANSWER, Wire
from tests.robots.grblhal.judge.compare import Chat, Partner
from tests.robots.grblhal.judge.partners import TIME_BYTE, FirmwareHangsError

TIME_PASSES = "time passes"
HANGS = "(hangs)"
PASS_SECONDS = 6.0
"""More than a move or a dwell lasts."""
POLL_SECONDS = 0.05
CALM = 3
"""Equal reports after which a state is at rest."""
MOST_POLLS = 400
MOST_PASSES = 60
PASSING = ("Hold:1", "Door:1", "Door:2", "Door:3", "Home")
"""States that end by themselves within a short time; a firmware may stay in one."""
CALM_PASSING = 20
REPORT_SECONDS = 3.0
MOST_ROUNDS = 3
MOST_WORDS = 100
"""Words that are played once more to both, to find the kinds of differences."""

INPUTS: Mapping[str, bytes] = {
    "empty line": b"\n",
    "move": b"G91G1X5F60\n",
    "unknown code": b"G200\n",
    "dwell": b"G4P5\n",
    "probe": b"G91G38.2X5F60\n",
    "M0": b"M0\n",
    "M2": b"M2\n",
    "M5": b"M5\n",
    "M6": b"T1M6\n",
    "jog": b"$J=G91X5F60\n",
    "bad jog": b"$J=X\n",
    "$": b"$\n",
    "$10": b"$10\n",
    "unknown setting": b"$9999=1\n",
    "$X": b"$X\n",
    "$C": b"$C\n",
    "$H": b"$H\n",
    "$SLP": b"$SLP\n",
    "?": b"?",
    "hold": b"!",
    "start": b"~",
    "reset": b"\x18",
    "stop": b"\x19",
    "door": b"\x84",
    "jog cancel": b"\x85",
    "spindle stop": b"\x9e",
    "tool acknowledge": b"\xa3",
    TIME_PASSES: TIME_BYTE,
}
SMALL = ("empty line", "move", "unknown code", "$X", "$C", "hold", "start", "reset", TIME_PASSES)
"""Inputs that `make test` learns."""


NOT_COMPARED: Mapping[str, tuple[str, ...]] = {
    "door": ("Tool",),
    "tool acknowledge": ("Tool",),
    "$C": ("Hold", "Door", "Tool", "Jog"),
}
"""Inputs that are not sent in these states: docs/robots/grblhal.md lists what differs there."""


class OutOfTimeError(Exception):
    """The learner has used up its time or its steps."""


class Budget(NamedTuple):
    """Bounds of the learning of one controller; ``until`` is a time of `time.monotonic`."""

    until: float = math.inf
    steps: float = math.inf


ENDLESS = Budget()


class Controller(SUL):  # type: ignore[misc]
    """A partner; for each query it begins anew. Words that it answers otherwise than ``expected``
    are noted in `differences`."""

    def __init__(
        self, partner: Partner, budget: Budget = ENDLESS, expected: MealyMachine | None = None
    ) -> None:
        super().__init__()
        self._partner = partner
        self._budget = budget
        self._expected = expected
        self._stack = ExitStack()
        self._wire: Wire | None = None
        self._word: list[str] = []
        self._remembers = self._waiting = self._hangs = self._differs = False
        self._state = ""
        self.steps = 0
        self.differences: list[tuple[str, ...]] = []

    def pre(self) -> None:
        if self._wire is not None and self._remembers:
            self._wire.begin_again()
        else:
            self._stack.close()
            self._wire = self._stack.enter_context(self._partner())
            rest(self._wire)
            self._remembers = self._wire.remember()
        self._waiting = self._hangs = self._differs = False
        self._word, self._state = [], ""
        if self._expected is not None:
            self._expected.reset_to_initial()

    def post(self) -> None: ...

    def close(self) -> None:
        self._wire = None
        self._stack.close()

    def step(self, letter: str) -> str:
        self.steps += 1
        if self.steps > self._budget.steps or time.monotonic() > self._budget.until:
            raise OutOfTimeError
        answer = self._answer(letter)
        self._word.append(letter)
        if self._expected is not None and not self._differs:
            self._differs = self._expected.step(letter) != answer
            if self._differs:
                self.differences.append(tuple(self._word))
        return answer

    def answers(self, word: Iterable[str]) -> list[str]:
        """The answers to a word, from the start."""
        self.pre()
        return [self._answer(letter) for letter in word]

    def _answer(self, letter: str) -> str:
        data = INPUTS[letter]
        if self._hangs:
            return HANGS
        if self._waiting and data.endswith(b"\n"):
            return "(a line waits)"
        if self._state.startswith(NOT_COMPARED.get(letter, ())):
            return "(not compared)"
        try:
            lines = self._lines(letter, data)
        except FirmwareHangsError:
            self._hangs = True
            return HANGS
        self._waiting = self._waits(data, lines)
        self._state = plain(lines[-1])
        return " ".join(map(plain, filter(None, lines)))

    def _lines(self, letter: str, data: bytes) -> list[str]:
        assert self._wire is not None
        if letter == TIME_PASSES:
            return pass_time(self._wire)
        self._wire.write(data)
        return rest(self._wire)

    def _waits(self, data: bytes, lines: Sequence[str]) -> bool:
        """Whether a line is not answered yet; a reset answers none."""
        begins = data.endswith(b"\n") or self._waiting
        ended = any(ANSWER.match(line) or line.startswith("GrblHAL ") for line in lines)
        return begins and not ended


def rest(wire: Wire) -> list[str]:
    """Lines until some reports show the same state, and this report."""
    got: list[str] = []
    calm, before = 0, ""
    for _ in range(MOST_POLLS):
        wire.run(POLL_SECONDS)
        wire.write(FULL_STATUS)
        lines = wire.until(lambda line: line.startswith("<") and "|FW:" in line, 1, REPORT_SECONDS)
        if lines[-1] == NO_ANSWER:
            got, calm = got + lines[:-1], 0
            continue
        state = re.sub(r"\|(MPos|Bf|WCO):[^|>]*", "", lines[-1])
        unchanged = state == before and len(lines) == 1
        calm, before = calm + 1 if unchanged else 0, state
        got += lines[:-1]
        if calm == (CALM_PASSING if plain(state).startswith(PASSING) else CALM):
            return [*got, lines[-1]]
    raise AssertionError(f"never at rest: {got[-3:]} {before}")


def pass_time(wire: Wire) -> list[str]:
    """Lines until nothing changes any more."""
    got, before = rest(wire), ""
    for _ in range(MOST_PASSES):
        wire.pass_time(PASS_SECONDS)
        lines = rest(wire)
        if lines == [before]:
            return [*(line for line in got if not line.startswith("<")), before]
        got, before = got + lines, lines[-1]
    raise AssertionError(f"time passes without an end: {before}")


def plain(line: str) -> str:
    """A line without its numbers; of a report the state, the outputs and the inputs."""
    if line.startswith("<"):
        fields = line.strip("<>").split("|")
        shown = (field for field in fields[1:] if field.startswith(("A:", "Pn:")))
        return " ".join([fields[0], *(field for field in shown if field != "A:")])
    return re.sub(r"-?\d+\.\d+(,-?\d+\.\d+)*", "…", line)


class Learned(NamedTuple):
    """A learned machine and the cost of learning it; ``complete``: the budget was enough, else the
    machine is the last hypothesis."""

    machine: MealyMachine
    queries: int
    steps: int
    complete: bool = True
    differences: Sequence[tuple[str, ...]] = ()

    @property
    def states(self) -> int:
        return len(self.machine.states)


class Words(Oracle):  # type: ignore[misc]
    """Tries where a hypothesis differs from the machine of another partner, then random words."""

    def __init__(
        self, alphabet: list[str], sul: Controller, other: Learned | None, tests: int
    ) -> None:
        super().__init__(alphabet, sul)
        self._other = other
        self._random = RandomWpMethodEqOracle(alphabet, sul, expected_length=4, num_tests=tests)
        self.hypothesis: Any = None

    def find_cex(self, hypothesis: Any) -> Any:
        self.hypothesis = hypothesis
        if self._other is not None:
            word = bisimilar(hypothesis, self._other.machine, return_cex=True)
            if word and self.sul.answers(word) != execute(hypothesis, word):
                return word
        return self._random.find_cex(hypothesis)


def learn(
    partner: Partner,
    inputs: Iterable[str] = INPUTS,
    *,
    tests: int = 1000,
    other: Learned | None = None,
    budget: Budget = ENDLESS,
    seed: int = 0,
) -> Learned:
    """Learns the machine of a partner; ``tests`` random words look for what is still missing, and
    so do the words that tell it from the machine of ``other``."""
    random.seed(seed)  # AALpy has no generator of its own
    alphabet = list(inputs)
    sul = Controller(partner, budget, other.machine if other else None)
    oracle = Words(alphabet, sul, other, tests)
    complete = True
    try:
        machine: Any = run_Lsharp(
            alphabet,
            sul,
            oracle,
            "mealy",
            extension_rule=None,
            separation_rule="SepSeq",
            print_level=0,
        )
    except OutOfTimeError:
        machine, complete = oracle.hypothesis, False
    finally:
        sul.close()
    shortest = sorted(set(sul.differences), key=len)
    return Learned(machine, sul.num_queries, sul.steps, complete, shortest)


def execute(machine: MealyMachine, word: Sequence[str]) -> list[str]:
    answers: list[str] = machine.execute_sequence(machine.initial_state, word)
    return answers


class Difference(NamedTuple):
    """A word, and the answers of both controllers to it; the last ones differ."""

    word: tuple[str, ...]
    ours: tuple[str, ...]
    theirs: tuple[str, ...]

    def as_chat(self) -> Chat:
        """The answers of the other controller, to be played to ours."""
        return Chat([INPUTS[letter] for letter in self.word], [[line] for line in self.theirs])


class Comparison(NamedTuple):
    """Two learned machines; ``differences``: of each kind the shortest word, shortest first."""

    ours: Learned
    theirs: Learned
    differences: Sequence[Difference]

    @property
    def equal(self) -> bool:
        return self.ours.complete and self.theirs.complete and not self.differences


def compare(
    ours: Partner,
    theirs: Partner,
    inputs: Iterable[str] = INPUTS,
    *,
    tests: int = 1000,
    budget: Budget = ENDLESS,
) -> Comparison:
    """Learns both. A word that only the learned machines answer differently, not the controllers,
    is a state that was not found yet: they are learned again."""
    alphabet, known = list(inputs), None
    for _ in range(MOST_ROUNDS):
        one = learn(ours, alphabet, tests=tests, other=known, budget=budget)
        other = learn(theirs, alphabet, tests=tests, other=one, budget=budget)
        words = list(other.differences)
        if one.complete and other.complete:
            word: Any = bisimilar(one.machine, other.machine, return_cex=True)
            if word is None:
                return Comparison(one, other, ())
            words.append(tuple(word))
        found = differences(ours, theirs, words)
        if found or not (one.complete and other.complete):
            return Comparison(one, other, found)
        known = other
    return Comparison(one._replace(complete=False), other, ())


def differences(
    ours: Partner, theirs: Partner, words: Iterable[tuple[str, ...]]
) -> list[Difference]:
    """The words that the controllers answer differently, of each kind the shortest."""
    kinds: dict[tuple[str, str, str], Difference] = {}
    with closing(Controller(ours)) as one, closing(Controller(theirs)) as other:
        for word in sorted(words, key=len)[:MOST_WORDS]:
            pairs = list(zip(word, one.answers(word), other.answers(word), strict=True))
            at = next((n for n, (_, mine, its) in enumerate(pairs, 1) if mine != its), None)
            if at is not None:
                played, mine, its = zip(*pairs[:at], strict=True)
                kinds.setdefault(pairs[at - 1], Difference(played, mine, its))
    return sorted(kinds.values(), key=lambda found: len(found.word))
