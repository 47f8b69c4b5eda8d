"""An arm among objects: a contact that stops it, and a probe that finds a wall."""

import understudy

POST = {
    "name": "post",
    "type": "cylinder",
    "position_mm": [0, 620, 995],
    "radius_mm": 20,
    "height_mm": 400,
}
WALL = {
    "name": "wall",
    "type": "box",
    "position_mm": [800, 0, 900],
    "dimensions_mm": [100, 400, 400],
}
PROBE = {1: {"name": "contact_probe", "tcp_mm_deg": [0, 0, 100, 0, 0, 0]}}

arm = understudy.VirtualController(
    "g60",
    environment={"objects": [POST, WALL]},
    tools=PROBE,
    collision={"on_collision": "stop"},
)
arm.on_collision(lambda contact: print(contact.text()))
arm.connect()
arm.enable()

arm.send_gcode("G1 A120 F3000")  # the wrist hits the post
arm.run_until_idle()
print(f"{arm.status().state}: {arm.status().error_message}")
assert arm.status().error_code == 1

arm.reset()
arm.enable()
arm.send_gcode("G1 A0 F3000")  # back: contacts that exist already do not stop it
arm.run_until_idle()
assert arm.contacts() == ()

arm.send_gcode("M6 T1")
arm.send_gcode("G0 X600 Y0 Z900 A0 B90 C0")
arm.send_gcode("G38.2 X900 F600")  # toward the wall, until the tip touches it
arm.run_until_idle()
print(f"the wall is at x = {arm.tcp().x * 1000:.2f} mm")
assert round(arm.tcp().x * 1000) == 750
print(arm.tally())
