"""Start-up code of an application: the real controller if it answers, else a simulated one.

    python 18_real_or_simulation.py [/dev/ttyACM0]

The rest of the application is the same for both: a WeldingSequencer welds a seam.
"""

import sys

from understudy import GrblHalDriver, SimulationConfig, VirtualController, WeldingSequencer

PORT = sys.argv[1] if len(sys.argv) > 1 else "/dev/ttyACM0"
SEAM = ["G91 G1 U20 F600", "G90"]

driver = GrblHalDriver(PORT, "g60")
refused = driver.connect(timeout_s=2.0)
if refused is None:
    print("starting in REAL MODE")
    controller: GrblHalDriver | VirtualController = driver
else:
    print(f"starting in SIMULATION MODE: {refused.reason}")
    driver.close()
    simulated = VirtualController("g60", SimulationConfig(update_rate_hz=1000), welder={})
    simulated.connect()
    controller = simulated

controller.enable()
controller.send_gcode("G0 A0 B-40 C80 U0 V50 W0")
controller.run_until_idle()
outcome = WeldingSequencer(controller).weld(SEAM)
print(f"seam: {outcome.phase} {outcome.fault}")
