"""Stand-in robots: a robot cell that is not there, but answers on the wire as the real one does."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.app.build import load_cell as load_cell
    from understudy.app.stand_in import StandIn as StandIn
    from understudy.app.validate import validate as validate
    from understudy.errors import ConfigError as ConfigError
    from understudy.errors import Refused as Refused
    from understudy.jobs.weld.client import WeldingSequencer as WeldingSequencer
    from understudy.offline.waypoints import Waypoint as Waypoint
    from understudy.robots.arm.client import GrblHalDriver as GrblHalDriver
    from understudy.robots.arm.offline_classes import CollisionDetector as CollisionDetector
    from understudy.robots.arm.offline_classes import CycleTimeEstimator as CycleTimeEstimator
    from understudy.robots.arm.offline_classes import MotionSimulator as MotionSimulator
    from understudy.robots.arm.offline_classes import ReachabilityAnalyzer as ReachabilityAnalyzer
    from understudy.robots.arm.simulation_engine import SimulationEngine as SimulationEngine
    from understudy.robots.arm.virtual_controller import SimulationConfig as SimulationConfig
    from understudy.robots.arm.virtual_controller import VirtualController as VirtualController
    from understudy.sight.calibrator import HandEyeCalibrator as HandEyeCalibrator
    from understudy.space.pose import Pose as Pose
    from understudy.vision.script_bridge import VisionBridge as VisionBridge

__version__ = "0.1.0"

# name → module; imported when asked for, so that `import understudy` stays fast.
_OFFERED = {
    "load_cell": "understudy.app.build",
    "CollisionDetector": "understudy.robots.arm.offline_classes",
    "ConfigError": "understudy.errors",
    "CycleTimeEstimator": "understudy.robots.arm.offline_classes",
    "GrblHalDriver": "understudy.robots.arm.client",
    "HandEyeCalibrator": "understudy.sight.calibrator",
    "MotionSimulator": "understudy.robots.arm.offline_classes",
    "Pose": "understudy.space.pose",
    "ReachabilityAnalyzer": "understudy.robots.arm.offline_classes",
    "Refused": "understudy.errors",
    "SimulationConfig": "understudy.robots.arm.virtual_controller",
    "SimulationEngine": "understudy.robots.arm.simulation_engine",
    "StandIn": "understudy.app.stand_in",
    "VirtualController": "understudy.robots.arm.virtual_controller",
    "VisionBridge": "understudy.vision.script_bridge",
    "Waypoint": "understudy.offline.waypoints",
    "WeldingSequencer": "understudy.jobs.weld.client",
    "validate": "understudy.app.validate",
}
__all__ = [
    "CollisionDetector",
    "ConfigError",
    "CycleTimeEstimator",
    "GrblHalDriver",
    "HandEyeCalibrator",
    "MotionSimulator",
    "Pose",
    "ReachabilityAnalyzer",
    "Refused",
    "SimulationConfig",
    "SimulationEngine",
    "StandIn",
    "VirtualController",
    "VisionBridge",
    "Waypoint",
    "WeldingSequencer",
    "load_cell",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in _OFFERED:
        raise AttributeError(f"module 'understudy' has no attribute {name!r}")
    return getattr(import_module(_OFFERED[name]), name)
