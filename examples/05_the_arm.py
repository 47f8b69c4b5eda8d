"""An arm and its controller: jog, G-code, hold, pins; on a clock of its own."""

import math

import understudy

arm = understudy.VirtualController("g60", tools={1: {"tcp_mm_deg": [0, 0, 150, 0, 0, 0]}})
print(arm.send_gcode("G0 A10"))  # refused: not connected, not enabled
arm.connect()
arm.enable()

arm.jog(0, 0.5)  # rad/s, until stop_jog or the end of the axis
arm.advance(1.0)
arm.stop_jog()
arm.run_until_idle()
print(f"jogged J1 to {math.degrees(arm.joint_state().positions[0]):.1f}°")

arm.send_gcode("M6 T1")
arm.send_gcode("G0 X500 Y-100 Z300 A180 B0 C0")  # point to point, tool down
arm.send_gcode("M62 P8")  # with the next motion
arm.send_gcode("G1 Y100 F3000")  # a straight line
arm.send_gcode("G17 G3 Y-100 J-100")  # half a circle
arm.send_gcode("M66 P10 L3 Q5")  # wait for input 10, five seconds at most
arm.send_gcode("G28")

arm.advance(2.0)
arm.hold()
arm.run_until_idle()
print(f"{arm.status().state} at {arm.simulation_time():.3f} s")
arm.cycle_start()
arm.run_until_idle()
print("M66 read", arm.input_result())
print(f"home: {arm.is_homed()} after {arm.simulation_time():.3f} s")
assert arm.is_homed()

arm.send_gcode("G0 B75")
arm.run_until_idle()
print(arm.status().error_message)
assert arm.status().error_code == 2
