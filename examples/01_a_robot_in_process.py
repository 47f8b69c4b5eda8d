"""A robot without a socket, on virtual time: nothing waits, and every run is the same."""

import understudy

cell = understudy.load_cell("text_robot", seed=7)
client = cell.connect("bench.text_tcp")
watcher = cell.connect("bench.text_tcp")

client.say(b"MOVE_ABS 100,0,150,0,0,0\n")
for _ in range(5):
    cell.advance(0.1)
    answer = watcher.ask(b"GET_POS\n")
    print(f"{cell.now:.1f} s  {answer.decode().strip()}")
print(client.received().decode().strip())
assert cell.now == 0.5
