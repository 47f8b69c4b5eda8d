"""A simulated KUKA in this process: one record in, feedback and telemetry out, without a socket."""

import struct

import understudy
from understudy.robots.kuka.driver import TelemetryReader

cell = understudy.load_cell("kuka_eki")
client = cell.connect("kuka.kuka_eki.command")
watcher = cell.connect("kuka.kuka_eki.telemetry")
telemetry = TelemetryReader()

# G1 X200 F100: record 1, a line, X and F given
client.say(struct.pack("<ii8fi4x", 1, 0, 200, 0, 0, 0, 0, 0, 100, 0, 1 | 64))
for _ in range(5):
    cell.advance(0.5)
    telemetry.feed(watcher.received())
    now = telemetry.last
    assert now is not None
    print(f"{cell.now:.1f} s  X {now.pose.x * 1000:6.1f} mm  {now.speed:.1f} m/s")

done, waiting, *_rest = struct.unpack("<12i", client.received()[-48:])
print(f"record {done} is done, {waiting} wait")
assert (done, waiting) == (1, 0)
