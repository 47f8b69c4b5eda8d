"""Takes a snapshot during a motion and restores it twice: both times the same bytes follow."""

import understudy

cell = understudy.load_cell("text_robot")
client = cell.connect()
client.say(b"MOVE_ABS 100,200,150,0,0,90\n")
cell.advance(0.2)
saved = cell.snapshot()

endings = []
for _ in range(2):
    cell.restore(saved)
    cell.run_while_owed()
    endings.append((cell.now, client.received()))

print(endings[0])
assert endings[0] == endings[1]
