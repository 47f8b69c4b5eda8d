"""Expected reactions to the faults of a KUKA."""

from understudy.ports.exploration import Exploration
from understudy.ports.fault_reactions import (
    ENGINE_FAILED,
    ENGINE_RUNS,
    STANDS,
    Reaction,
    Reactions,
    moving,
    state,
    stopped,
)

REACTIONS: Reactions = {
    "emergency_stop": Reaction(
        moving("base", 0.02, 0.05),
        (state("EmergencyStopped"), ENGINE_FAILED, STANDS),
        within_s=0.5,
    ),
    "emergency_release": Reaction(stopped, (state("Idle"), ENGINE_RUNS), within_s=0.5),
}
EXPLORED = Exploration(reach={"state": ("Idle", "Run", "EmergencyStopped")})
