"""Execution of programs: the requests of each line in their turn, on a queue of motion."""
