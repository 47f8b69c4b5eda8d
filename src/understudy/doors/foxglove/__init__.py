"""A door for Foxglove and Lichtblick: the channels of a running cell, live. `run --foxglove`."""
