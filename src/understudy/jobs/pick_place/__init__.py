"""The pick & place job: cycle, safety and its wiring in a cell."""
