"""Expected reactions to the faults of a machine."""

from understudy.ports.exploration import Exploration, texts
from understudy.ports.fault_reactions import (
    ENGINE_FAILED,
    ENGINE_RUNS,
    STANDS,
    Reaction,
    Reactions,
    Seen,
    Trial,
    answered,
    error,
    moving,
    state,
    stopped,
)

FACE = "grblhal"
EMERGENCY, HARD_LIMIT, PROBE_BEFORE, PROBE_AFTER, NOT_FOUND = 10, 1, 4, 5, 9
HOMED_S = 30.0
jogging = moving("joint", 0.02, 0.1)


def connected(trial: Trial) -> None:
    """a client is connected, the machine is at rest"""
    trial.client(FACE)
    trial.advance(0.1)


def hard_limits_on(trial: Trial) -> None:
    """hard limits are on ($21), the machine moves"""
    trial.client(FACE).say(b"$21=1\nG21 G91 G1 Y20 F600\n")
    trial.advance(0.5)


def unlock(trial: Trial) -> None:
    """a client resets and unlocks the controller"""
    trial.client(FACE).say(b"\x18")
    trial.client(FACE).say(b"$X\n")


def home(trial: Trial) -> None:
    """a client homes the machine"""
    trial.client(FACE).say(b"$H\n")


def probe(trial: Trial) -> None:
    """a client probes downwards"""
    trial.client(FACE).say(b"G21 G91 G38.2 Z-60 F600\n")


def switch_stuck(trial: Trial) -> None:
    """the limit switch of X is stuck"""
    connected(trial)
    trial.part.inject("limit_switch_stuck", {"axis": 0.0}, trial.now)
    trial.advance(0.1)


def ask(trial: Trial) -> None:
    """a client asks for the report"""
    trial.client(FACE).say(b"?")


REACTIONS: Reactions = {
    "emergency_stop": Reaction(
        jogging, (state("Alarm"), error(EMERGENCY), ENGINE_FAILED, STANDS), within_s=0.5
    ),
    "emergency_release": Reaction(stopped, (error(0), ENGINE_RUNS), within_s=0.5, then=unlock),
    "limit_switch_stuck": Reaction(
        hard_limits_on,
        (answered(FACE, f"ALARM:{HARD_LIMIT}"), error(HARD_LIMIT), ENGINE_FAILED, STANDS),
        within_s=0.5,
    ),
    "limit_switch_dead": Reaction(
        connected,
        (answered(FACE, f"ALARM:{NOT_FOUND}"), error(NOT_FOUND), STANDS),
        within_s=HOMED_S,
        then=home,
    ),
    "probe_dead": Reaction(
        connected,
        (answered(FACE, f"ALARM:{PROBE_AFTER}"), error(PROBE_AFTER), STANDS),
        within_s=HOMED_S,
        then=probe,
    ),
    "probe_stuck": Reaction(
        connected,
        (answered(FACE, f"ALARM:{PROBE_BEFORE}"), error(PROBE_BEFORE), STANDS),
        within_s=1.0,
        then=probe,
    ),
    "sensors_repaired": Reaction(
        switch_stuck,
        (
            Seen(
                "the report shows no pressed switch",
                lambda t: "<" in (text := t.client(FACE).text(t.injected_at)) and "Pn:" not in text,
            ),
        ),
        then=ask,
    ),
}

STATES = ("Idle", "Run", "Jog", "Hold", "Home", "Alarm")
EXPLORED = Exploration(reach={"state": STATES, "alarm": ("1", "2", "3", "4", "5", "9", "10", "14")})
LINES = (
    *("G0X10", "G91 G1 X5 Y-3 F600", "G90 G1 X0 Y0 Z0 F2000", "G4 P0.2", "$H", "$X", "G28", "M0"),
    *("$J=G91 X20 F500", "G38.2 Z-20 F100", "G0X9999", "M3 S1000", "M5", "?", "!", "~", "G99"),
    *("$$", "$G", "M8", "M9", "\x18", "\x85", "\x19"),
)
FACE_EXPLORED = Exploration(says=texts(*LINES))
