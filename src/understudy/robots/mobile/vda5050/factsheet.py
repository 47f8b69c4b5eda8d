"""The factsheet: what the robot is and can do, from its file."""

from collections.abc import Mapping
from typing import Any

from understudy.robots.mobile.config.profile import DriveModel
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.vda5050.messages import MOST_ELEMENTS
from understudy.units import MM

KINEMATICS: Mapping[DriveModel, str] = {
    "differential": "DIFF",
    "mecanum": "OMNI",
    "ackermann": "THREEWHEEL",
}
INSTANT_ACTIONS: Mapping[str, str] = {
    "startPause": "the robot stops, and goes on after stopPause",
    "stopPause": "the robot goes on",
    "cancelOrder": "the robot stops, and forgets its order",
    "stateRequest": "the robot sends its state",
    "factsheetRequest": "the robot sends its factsheet",
}
NODE_ACTIONS: Mapping[str, str] = {
    "executeAction": "moves a functional motor: motorId or functionKey, targetPosition",
    "wait": "waits for `seconds`",
}


def factsheet(file: RobotFile) -> dict[str, Any]:
    """The body of the message, as the schema has it."""
    profile = file.runtime.simulation_profile
    model: DriveModel = profile.drive_model if profile is not None else "differential"
    drives = [motor.limits.si for motor in file.motors if motor.role == "DRIVE"]
    size = file.dimensions
    return {
        "typeSpecification": {
            "seriesName": file.identity.model or file.identity.name,
            "agvKinematic": KINEMATICS[model],
            "agvClass": "CARRIER",
            "maxLoadMass": size.payload_max_kg or 0.0,
            "localizationTypes": ["NATURAL", "DMC"],
            "navigationTypes": ["AUTONOMOUS"],
        },
        "physicalParameters": {
            "speedMin": 0.0,
            "speedMax": min((limits.max_speed for limits in drives), default=0.0),
            "accelerationMax": min((limits.max_acceleration for limits in drives), default=0.0),
            "decelerationMax": min((limits.max_deceleration for limits in drives), default=0.0),
            "heightMax": size.height_mm * MM,
            "width": size.width_mm * MM,
            "length": size.length_mm * MM,
        },
        "protocolLimits": {
            "maxStringLens": {},
            "maxArrayLens": {"order.nodes": MOST_ELEMENTS, "order.edges": MOST_ELEMENTS},
            "timing": {"minOrderInterval": 0.02, "minStateInterval": 0.02},
        },
        "protocolFeatures": {"optionalParameters": [], "agvActions": _actions()},
        "agvGeometry": {"envelopes2d": [_envelope(file)]},
        "loadSpecification": {},
    }


def _actions() -> list[dict[str, Any]]:
    found = [(INSTANT_ACTIONS, ["INSTANT"]), (NODE_ACTIONS, ["NODE", "EDGE"])]
    return [
        {"actionType": name, "actionDescription": text, "actionScopes": scopes}
        for actions, scopes in found
        for name, text in actions.items()
    ]


def _envelope(file: RobotFile) -> dict[str, Any]:
    half, side = file.dimensions.length_mm * MM / 2.0, file.dimensions.width_mm * MM / 2.0
    corners = [(half, side), (-half, side), (-half, -side), (half, -side)]
    return {"set": "outline", "polygonPoints": [{"x": x, "y": y} for x, y in corners]}
