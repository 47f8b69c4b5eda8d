"""Logs of a cell as MCAP files: recorded, read, wound back and shared.

`recording.py` writes what the channels of a cell send (`doors/channels.py`) in a thread, with
snapshots of the cell in between. `file.py` reads such a file, also while it is written or if its
end is missing. `replay.py` builds the cell of a file again, at any instant of it.
"""
