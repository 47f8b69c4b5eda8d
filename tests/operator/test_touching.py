"""Contacts and held objects, as pages show them."""

from tests.benches import Bench

BLOCK = {"name": "block", "type": "box", "dimensions_mm": [200, 200, 200]}


def test_a_view_has_the_contacts_until_they_are_cleared(arm: Bench) -> None:
    assert arm.live.watch.look().contacts == []
    arm.do("add_object", object={**BLOCK, "position_mm": arm.pose("g60")[:3]})
    arm.forward(0.1)
    contacts = arm.live.watch.look().contacts
    assert {contact["robot"] for contact in contacts} == {"g60"}
    assert {contact["object"] for contact in contacts} == {"block"}
    arm.do("clear_collisions")
    assert arm.live.watch.look().contacts == []


def test_the_scene_has_held_objects_in_the_flange_frame(arm: Bench) -> None:
    arm.do("attach", robot="g60", object={**BLOCK, "position_mm": [0, 0, 250]})
    (held,) = arm.do("scene")["robots"]["g60"]["held"]
    assert (held["name"], held["type"]) == ("block", "box")
    assert held["transform"][11] == 0.25
    arm.do("detach", robot="g60", name="block")
    scene = arm.do("scene")
    assert scene["robots"]["g60"]["held"] == []
    assert "block" in [thing["name"] for thing in scene["environment"]]
