"""Expected reactions to the faults of an arm."""

from understudy.ports.exploration import Exploration
from understudy.ports.fault_reactions import (
    ENGINE_FAILED,
    ENGINE_RUNS,
    STANDS,
    Reaction,
    Reactions,
    error,
    moving,
    state,
    stopped,
)

EMERGENCY, MOTOR = 10, 17
jogging = moving("joint", 0.2, 0.5)
REACTIONS: Reactions = {
    "emergency_stop": Reaction(
        jogging, (state("Alarm"), error(EMERGENCY), ENGINE_FAILED, STANDS), within_s=0.5
    ),
    "emergency_release": Reaction(stopped, (ENGINE_RUNS, error(0)), within_s=0.5),
    "axis_fault": Reaction(
        jogging,
        (error(MOTOR), ENGINE_FAILED, STANDS),
        within_s=0.5,
        parameters={"axis": 2.0},
    ),
}
EXPLORED = Exploration(
    reach={"state": ("Idle", "Run", "Jog", "Hold", "Home", "Alarm"), "alarm": ("2", "10", "17")}
)
