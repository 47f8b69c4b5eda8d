"""An arm among objects, on virtual time. At home the flange is at (620, 0, 995) mm and points along
x.

A turn of the first joint moves the flange on a circle of 620 mm.
"""

from typing import Any

from understudy import VirtualController
from understudy.simulation.collision.contact import Contact

HAND = 620.0
"""Millimetres from the first axis to the flange, home."""
POST = {
    "name": "post", "type": "cylinder", "position_mm": [0.0, 620.0, 995.0],
    "radius_mm": 20.0, "height_mm": 400.0,
}  # fmt: skip
"""It is at the place of the flange at A90."""
NO_DELAYS = {"command_delay_ms": 0, "feedback_delay_ms": 0}


def arm(*objects: dict[str, Any], **settings: Any) -> VirtualController:
    """Connected, enabled, without delays, among these objects."""
    around = {"objects": list(objects), "zones": settings.pop("zones", [])}
    controller = VirtualController(environment=around, simulation=NO_DELAYS, **settings)
    controller.connect()
    controller.enable()
    return controller


def hits(controller: VirtualController) -> list[Contact]:
    """A list that is filled with the contacts."""
    found: list[Contact] = []
    controller.on_collision(found.append)
    return found


def send(controller: VirtualController, *lines: str) -> None:
    for line in lines:
        assert controller.send_gcode(line) is None, line


def names(controller: VirtualController) -> list[tuple[str, str]]:
    return [contact.names for contact in controller.contacts()]
