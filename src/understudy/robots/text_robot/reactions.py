"""Expected reactions to the faults of the text robot and of its face."""

from understudy.ports.exploration import Exploration, texts
from understudy.ports.fault_reactions import (
    ENGINE_FAILED,
    ENGINE_RUNS,
    STANDS,
    Reaction,
    Reactions,
    Seen,
    Talk,
    Trial,
    answered,
    at_once,
    error,
    state,
    stopped,
)

FACE = "text_tcp"
MOVE = b"MOVE_ABS 100,0,150,0,0,0\n"
DONE = "OK Movement completed"
READINGS = 8


def moving(trial: Trial) -> None:
    """a client moves the robot"""
    trial.client(FACE).say(MOVE)
    trial.advance(0.1)


def move(trial: Trial) -> None:
    """a client moves the robot"""
    trial.client(FACE).say(MOVE)


def ask_state(trial: Trial) -> None:
    """a client asks for the status"""
    trial.client(FACE).say(b"GET_STATUS\n")


def read_often(trial: Trial) -> None:
    """a client reads position and status"""
    for _ in range(READINGS):
        trial.client(FACE).say(b"GET_POS\n")
        trial.client(FACE).say(b"GET_STATUS\n")
        trial.advance(0.05)


def _read(trial: Trial, fields: int, field: int) -> list[float]:
    """A field of all answers with this number of fields."""
    lines = trial.client(FACE).text(trial.injected_at).split("\n")
    rows = [line.removeprefix("OK ").split(",") for line in lines]
    return [float(row[field]) for row in rows if len(row) == fields]


def _scatters(trial: Trial, fields: int, field: int, amplitude: float) -> bool:
    """The values differ, by no more than twice the amplitude."""
    values = _read(trial, fields, field)
    return len(values) == READINGS and 0.0 < max(values) - min(values) <= 2.0 * amplitude


REACTIONS: Reactions = {
    "emergency_stop": Reaction(
        moving,
        (state("EmergencyStopped"), ENGINE_FAILED, STANDS, answered(FACE, "ERROR")),
        within_s=0.5,
    ),
    "emergency_release": Reaction(
        stopped, (ENGINE_RUNS, answered(FACE, DONE)), within_s=1.0, then=move
    ),
    "overheat": Reaction(
        at_once,
        (error(6), Seen("a client reads error 6", lambda t: 6.0 in _read(t, 4, 2))),
        then=ask_state,
    ),
    "position_noise": Reaction(
        at_once,
        (Seen("positions scatter within ± the amplitude", lambda t: _scatters(t, 6, 0, 0.1)),),
        then=read_often,
    ),
    "temperature_noise": Reaction(
        at_once,
        (Seen("temperatures scatter within ± the amplitude", lambda t: _scatters(t, 4, 1, 0.2)),),
        then=read_often,
    ),
}
FACE_REACTIONS: Reactions = {
    "communication_timeout": Reaction(
        at_once,
        (
            answered(FACE, "ERROR"),
            Seen("the robot has not moved", lambda t: not t.actions().condition(t.now).moving),
        ),
        within_s=10.0,
        then=move,
    ),
}
TALKS = {"": Talk(lambda trial, number: b"GET_POS\n")}
EXPLORED = Exploration(reach={"state": ("Idle", "Moving", "Homing", "EmergencyStopped", "Stopped")})
FACE_EXPLORED = Exploration(
    says=texts(
        *("GET_POS", "GET_STATUS", "MOVE_ABS 100,200,150,0,0,90", "MOVE_REL 10,0,-5", "HOME"),
        *("STOP", "RESET", "MOVE_ABS 1e9,0,0", "JUMP"),
    )
)
