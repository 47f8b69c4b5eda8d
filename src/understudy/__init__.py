"""Stand-in robots: a robot cell that is not there, but answers on the wire as the real one does."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.app.build import load_cell as load_cell
    from understudy.app.connection import AsyncConnection as AsyncConnection
    from understudy.app.connection import Connection as Connection
    from understudy.app.connection import connect as connect
    from understudy.app.connection import connect_async as connect_async
    from understudy.app.stand_in import StandIn as StandIn
    from understudy.app.validate import validate as validate
    from understudy.app.validate_several import validate_together as validate_together
    from understudy.devices.gripper.controller import GripperController as GripperController
    from understudy.errors import ConfigError as ConfigError
    from understudy.errors import Refused as Refused
    from understudy.jobs.modes.manager import ModeManager as ModeManager
    from understudy.jobs.pick_place.manager import PickPlaceManager as PickPlaceManager
    from understudy.jobs.pick_place.pallet import PalletPattern as PalletPattern
    from understudy.jobs.pick_place.safety import PickPlaceSafety as PickPlaceSafety
    from understudy.jobs.tools.manager import ToolManager as ToolManager
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
    from understudy.vision.server import VisionServer as VisionServer

__version__ = "0.1.0"

# name → module; imported when asked for, so that `import understudy` stays fast.
_OFFERED = {
    "connect": "understudy.app.connection",
    "connect_async": "understudy.app.connection",
    "load_cell": "understudy.app.build",
    "AsyncConnection": "understudy.app.connection",
    "Connection": "understudy.app.connection",
    "CollisionDetector": "understudy.robots.arm.offline_classes",
    "ConfigError": "understudy.errors",
    "CycleTimeEstimator": "understudy.robots.arm.offline_classes",
    "GrblHalDriver": "understudy.robots.arm.client",
    "GripperController": "understudy.devices.gripper.controller",
    "HandEyeCalibrator": "understudy.sight.calibrator",
    "ModeManager": "understudy.jobs.modes.manager",
    "MotionSimulator": "understudy.robots.arm.offline_classes",
    "PalletPattern": "understudy.jobs.pick_place.pallet",
    "PickPlaceManager": "understudy.jobs.pick_place.manager",
    "PickPlaceSafety": "understudy.jobs.pick_place.safety",
    "Pose": "understudy.space.pose",
    "ReachabilityAnalyzer": "understudy.robots.arm.offline_classes",
    "Refused": "understudy.errors",
    "SimulationConfig": "understudy.robots.arm.virtual_controller",
    "SimulationEngine": "understudy.robots.arm.simulation_engine",
    "StandIn": "understudy.app.stand_in",
    "ToolManager": "understudy.jobs.tools.manager",
    "VirtualController": "understudy.robots.arm.virtual_controller",
    "VisionBridge": "understudy.vision.script_bridge",
    "VisionServer": "understudy.vision.server",
    "Waypoint": "understudy.offline.waypoints",
    "WeldingSequencer": "understudy.jobs.weld.client",
    "validate": "understudy.app.validate",
    "validate_together": "understudy.app.validate_several",
}
__all__ = [
    "AsyncConnection",
    "CollisionDetector",
    "ConfigError",
    "Connection",
    "CycleTimeEstimator",
    "GrblHalDriver",
    "GripperController",
    "HandEyeCalibrator",
    "ModeManager",
    "MotionSimulator",
    "PalletPattern",
    "PickPlaceManager",
    "PickPlaceSafety",
    "Pose",
    "ReachabilityAnalyzer",
    "Refused",
    "SimulationConfig",
    "SimulationEngine",
    "StandIn",
    "ToolManager",
    "VirtualController",
    "VisionBridge",
    "VisionServer",
    "Waypoint",
    "WeldingSequencer",
    "connect",
    "connect_async",
    "load_cell",
    "validate",
    "validate_together",
]


def __getattr__(name: str) -> Any:
    if name not in _OFFERED:
        raise AttributeError(f"module 'understudy' has no attribute {name!r}")
    return getattr(import_module(_OFFERED[name]), name)


def __dir__() -> list[str]:
    """All names that are offered, also those that are not imported yet."""
    return sorted({*globals(), *_OFFERED})
