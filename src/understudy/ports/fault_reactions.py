"""Expected reactions to faults: one row for each declared fault, beside its declaration.

The module of a kind of robot, device, face or job that declares `FAULTS` declares `REACTIONS`, too:
fault → what is expected, in which situation, and within how long. `understudy faults --run` tries
every row in a cell of its own (`campaign.fault_atlas`), and other searches can use the predicates.

A face has `TALKS` beside them: a request of a client by the endpoint's suffix, so that the faults
that act between wire and face can be tried on every dialect.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from understudy.errors import Refused
from understudy.ports import Component, Figures, WireMessage
from understudy.ports.jobs import Played
from understudy.ports.operation import Frame, Jog, OperatorActions
from understudy.units import seconds

Data = bytes | WireMessage
Found = TypeVar("Found")


class NotPossibleError(Exception):
    """The situation of a row cannot be reached in this cell; the text says what it lacks."""


class TrialClient(Protocol):
    """A client of an endpoint. `heard`: what it has received, with the simulated time in ns."""

    heard: list[tuple[int, Data]]
    connected: bool

    def say(self, data: Data) -> None: ...

    def text(self, since: int = 0) -> str:
        """The received bytes from this simulated time on, as text."""
        ...


class Trial(Protocol):
    """A cell on virtual time in which one fault is tried, as the rows see it.

    `place`: what the fault acts on; `robot`: the robot that it belongs to. `injected_at`: simulated
    time in ns, 0 before the injection. `notes`: what a situation keeps for its predicates.
    `undisturbed`: what a client of the endpoint hears in the same cell without the fault.
    """

    place: str
    robot: str
    parameters: Figures
    injected_at: int
    notes: dict[str, Any]
    components: Mapping[str, Component]

    @property
    def now(self) -> int: ...

    @property
    def part(self) -> Any:
        """The component at the place."""
        ...

    @property
    def undisturbed(self) -> Sequence[tuple[int, Data]]: ...

    def own(self, name: str) -> Any:
        """A component of the robot, such as `welder`; NotPossibleError if it has none."""
        ...

    def find(self, kind: type[Found]) -> Found:
        """The first component of the robot with this Protocol; NotPossibleError without one."""
        ...

    def actions(self) -> OperatorActions:
        """What an operator can do with the robot."""
        ...

    def engine_state(self) -> str: ...

    def client(self, kind: str) -> TrialClient:
        """A client of the robot's endpoint of this kind of face; NotPossibleError without one. The
        same one for every call."""
        ...

    def endpoint_client(self) -> TrialClient:
        """A client of the endpoint that the fault acts on."""
        ...

    def converse(self) -> None:
        """Says the face's requests at the endpoint, and lets the time for their answers pass."""
        ...

    def advance(self, duration_s: float) -> None: ...

    def run_until(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        """NotPossibleError if the condition does not hold in time."""
        ...


class Seen(NamedTuple):
    """Something that must be seen. `lasts`: also at the end of the row's time."""

    words: str
    holds: Callable[[Trial], bool]
    lasts: bool = False


class LiveTrial(Protocol):
    """A live cell with its real server, in which a fault of the server is tried. Time runs as on
    the wall; waits end after a minute."""

    place: str

    def inject(self, fault: str) -> None:
        """Another fault at the same place."""
        ...

    def said(self, text: str) -> bool:
        """Whether the cell has written this into its log since the injection."""
        ...

    def heard(self, address: str) -> int:
        """Number of messages to the face of this address since the injection."""
        ...

    def press_and_release(self) -> None:
        """Emergency stop and its release: events that the server has to store."""
        ...


class SeenLive(NamedTuple):
    words: str
    holds: Callable[[LiveTrial], bool]


@dataclass(frozen=True)
class LiveReaction:
    """A row of a fault of a server. ``within_s``: of wall time."""

    situation: Callable[[LiveTrial], None]
    seen: tuple[SeenLive, ...]
    within_s: float = 60.0
    parameters: Figures = field(default_factory=dict)
    then: Callable[[LiveTrial], None] | None = None


Situation = Callable[[Trial], None]
"""Brings a fresh cell into the situation in which the fault is injected; its docstring names it."""


@dataclass(frozen=True)
class Reaction:
    """A row: `seen` within `within_s` of simulated time after the injection. `then`: what is
    done after the injection; its docstring names it."""

    situation: Situation
    seen: tuple[Seen, ...]
    within_s: float = 1.0
    parameters: Figures = field(default_factory=dict)
    then: Situation | None = None


Reactions = Mapping[str, Reaction]
"""Rows by the name of the fault."""


@dataclass(frozen=True)
class Talk:
    """A conversation at an endpoint: `request(trial, n)` is the n-th request of a client, None: the
    face speaks by itself. `pause_s`: between two requests. `repeats`: a request that arrives twice
    is answered twice."""

    request: Callable[[Trial, int], Data] | None
    pause_s: float = 1.0
    repeats: bool = True


def words_of(action: Callable[..., Any]) -> str:
    """The first line of a situation's docstring."""
    return (action.__doc__ or action.__name__.replace("_", " ")).strip().partition("\n")[0]


# ── what is often seen ──────────────────────────────────────────────────────────────────────────


def at_once(trial: Trial) -> None:
    """at rest, just started"""


def moving(frame: Frame, speed: float, step: float) -> Situation:
    """The operator jogs the first axis of a frame (rad or m, and per second)."""

    def jogs(trial: Trial) -> None:
        """the robot moves"""
        enable(trial)
        do(trial, "jog", Jog(frame, 0, speed, step))
        trial.advance(0.3)
        if robot_stands(trial):
            raise NotPossibleError(f"{trial.robot} does not move")

    return jogs


def enable(trial: Trial) -> None:
    """the drives are on"""
    if hasattr(trial.actions(), "enable"):
        do(trial, "enable")
        trial.advance(0.1)


def do(trial: Trial, action: str, *values: Any) -> None:
    """An action of the operator on the robot; NotPossibleError if it is refused."""
    refused = getattr(trial.actions(), action)(*values, trial.now)
    if isinstance(refused, Refused):
        raise NotPossibleError(f"{trial.robot}: {refused.reason}")


def stopped(trial: Trial) -> None:
    """in emergency stop"""
    enable(trial)
    do(trial, "emergency_stop")
    trial.advance(0.5)


def start_job(trial: Trial) -> None:
    """the job begins its first cycle"""
    job = trial.find(Played)
    enable(trial)
    refused = job.start(trial.now)
    if isinstance(refused, Refused):
        raise NotPossibleError(f"{trial.robot}: {refused.reason}")


def job_failed(trial: Trial) -> bool:
    job = trial.find(Played)
    return not job.is_running() and bool(job.report(trial.now).problem)


JOB_FAILS = Seen("the job ends with a fault", job_failed, True)


def engine(state: str) -> Seen:
    return Seen(f"the engine is in {state}", lambda trial: trial.engine_state() == state, True)


ENGINE_FAILED = engine("ERROR")
ENGINE_RUNS = engine("RUNNING")


def robot_stands(trial: Trial) -> bool:
    return not trial.actions().condition(trial.now).moving


STANDS = Seen("the robot stands", robot_stands, True)


def state(*names: str) -> Seen:
    """The state of the robot is one of these."""
    return Seen(
        f"the robot is in {' or '.join(names)}",
        lambda trial: trial.actions().condition(trial.now).state in names,
    )


def error(code: int) -> Seen:
    return Seen(
        f"the robot has error {code}",
        lambda trial: trial.actions().condition(trial.now).code == code,
        True,
    )


def active(name: str) -> Seen:
    """The device reports this fault, or a text that begins so."""

    def is_active(trial: Trial) -> bool:
        return any(each.startswith(name) for each in trial.part.active_faults())

    return Seen(f"the device reports `{name}`", is_active, True)


def status(path: str, value: Any, of: str = "") -> Seen:
    """A value in the status of the place, or of another component of the robot."""

    def is_so(trial: Trial) -> bool:
        found = (trial.own(of) if of else trial.part).status(trial.now)
        for name in path.split("."):
            found = getattr(found, name)
        return bool(found == value)

    return Seen(f"{of or 'its'} {path} is {value!r}".replace("its ", ""), is_so)


def answered(kind: str, text: str) -> Seen:
    """A client of this kind of face has received the text since the injection."""
    return Seen(
        f"a client of {kind} receives `{text}`",
        lambda trial: text in trial.client(kind).text(trial.injected_at),
    )


# ── faults between wire and face ────────────────────────────────────────────────────────────────


def _heard(trial: Trial) -> list[tuple[int, Data]]:
    return [each for each in trial.endpoint_client().heard if each[0] >= trial.injected_at]


def _missing_and_extra(trial: Trial) -> tuple[list[Data], list[Data]]:
    """What an undisturbed client hears and this one does not, and the other way round."""
    expected = [data for _, data in trial.undisturbed]
    extra = []
    for _, data in _heard(trial):
        if data in expected:
            expected.remove(data)
        else:
            extra.append(data)
    return expected, extra


def _latest_delay(trial: Trial) -> float:
    """The longest time by which a message came later than to an undisturbed client, in seconds."""
    left, longest = _heard(trial), 0
    for at, data in trial.undisturbed:
        found = next((each for each in left if each[1] == data), None)
        if found is not None:
            left.remove(found)
            longest = max(longest, found[0] - at)
    return seconds(longest)


def _payload(data: Data) -> bytes:
    return data if isinstance(data, bytes) else data.payload


def _one_lost(trial: Trial) -> bool:
    missing, extra = _missing_and_extra(trial)
    return (len(missing), len(extra)) == (1, 0) or (not missing and _latest_delay(trial) > 0.0)


def _one_byte_changed(trial: Trial) -> bool:
    missing, extra = _missing_and_extra(trial)
    if len(missing) != 1 or len(extra) != 1:
        return False
    one, other = _payload(missing[0]), _payload(extra[0])
    return len(one) == len(other) and sum(a != b for a, b in zip(one, other, strict=True)) == 1


def _all_late(trial: Trial) -> bool:
    return not _missing_and_extra(trial)[1] and _latest_delay(trial) > 0.0


def _one_twice(trial: Trial) -> bool:
    missing, extra = _missing_and_extra(trial)
    expected = [data for _, data in trial.undisturbed]
    return not missing and len(extra) == 1 and extra[0] in expected


def _asks_needed(trial: Trial) -> None:
    """a client talks to the endpoint"""
    trial.endpoint_client()
    trial.advance(0.1)


def _goes_on(trial: Trial) -> None:
    """the client goes on"""
    trial.converse()


LATE_MS = 500.0


def _in_talk(text: str, holds: Callable[[Trial], bool], **parameters: float) -> Reaction:
    """What is seen of a fault of answers or requests while a client talks to the endpoint."""
    return Reaction(_asks_needed, (Seen(text, holds),), parameters=parameters, then=_goes_on)


ALL_LATE = "answers arrive unchanged, in their order and late"
ANSWER_REACTIONS: Reactions = {
    "message_loss": _in_talk(
        "one answer does not arrive, or is sent again later; the others do", _one_lost
    ),
    "message_delay": _in_talk(ALL_LATE, _all_late, delay_ms=LATE_MS),
    "message_duplicate": _in_talk("one answer arrives twice", _one_twice),
    "message_garble": _in_talk("one byte of one answer is another", _one_byte_changed),
    "slow_client": _in_talk(ALL_LATE, _all_late, bytes_per_s=2000.0),
}


def _last_is_answered(trial: Trial) -> bool:
    return any(at >= trial.notes["last_request"] for at, _ in _heard(trial))


def _differs(trial: Trial) -> bool:
    return _last_is_answered(trial) and _heard(trial) != list(trial.undisturbed)


def _answered_once(trial: Trial) -> bool:
    """No address gets more messages, but for acknowledgements to the broker."""

    def counts(heard: Sequence[tuple[int, Data]]) -> Counter[str]:
        messages = (data for _, data in heard if isinstance(data, WireMessage))
        return Counter(m.address for m in messages if m.payload != BROKER_ACKNOWLEDGED)

    return counts(_heard(trial)) <= counts(trial.undisturbed)


BROKER_ACKNOWLEDGED = b"+ACK"
REQUEST_REACTIONS: Reactions = {
    "request_loss": _in_talk(
        "other answers than to all requests; the last one is answered", _differs
    ),
    "request_delay": _in_talk(
        "later answers; the last request is answered", _differs, delay_ms=LATE_MS
    ),
    "request_duplicate": _in_talk(
        "the request is carried out twice, or once if the dialect numbers requests",
        lambda trial: (
            bool(_missing_and_extra(trial)[1])
            if trial.notes["talk"].repeats
            else (_answered_once(trial) and _last_is_answered(trial))
        ),
    ),
    "request_garble": _in_talk(
        "the last request is answered, or the connection is closed",
        lambda trial: _last_is_answered(trial) or not trial.endpoint_client().connected,
    ),
}
FACE_REACTIONS: Reactions = {**ANSWER_REACTIONS, **REQUEST_REACTIONS}
"""The rows of `ports.faults.FACE_FAULTS`: the same for every dialect, seen beside a client of the
same cell without the fault."""
