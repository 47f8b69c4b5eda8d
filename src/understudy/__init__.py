"""Stand-in robots: a robot cell that is not there, but answers on the wire as the real one does."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.app.build import load_cell as load_cell
    from understudy.app.simulation_engine import SimulationEngine as SimulationEngine
    from understudy.app.stand_in import StandIn as StandIn
    from understudy.app.validate import validate as validate
    from understudy.app.virtual_controller import SimulationConfig as SimulationConfig
    from understudy.app.virtual_controller import VirtualController as VirtualController
    from understudy.errors import ConfigError as ConfigError
    from understudy.errors import Refused as Refused

__version__ = "0.1.0"

# name → module; imported when asked for, so that `import understudy` stays fast.
_OFFERED = {
    "load_cell": "understudy.app.build",
    "ConfigError": "understudy.errors",
    "Refused": "understudy.errors",
    "SimulationConfig": "understudy.app.virtual_controller",
    "SimulationEngine": "understudy.app.simulation_engine",
    "StandIn": "understudy.app.stand_in",
    "VirtualController": "understudy.app.virtual_controller",
    "validate": "understudy.app.validate",
}
__all__ = [
    "ConfigError",
    "Refused",
    "SimulationConfig",
    "SimulationEngine",
    "StandIn",
    "VirtualController",
    "load_cell",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in _OFFERED:
        raise AttributeError(f"module 'understudy' has no attribute {name!r}")
    return getattr(import_module(_OFFERED[name]), name)
