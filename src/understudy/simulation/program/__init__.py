"""Programs being carried out: what a line asks for, in its turn, on a queue of motion."""
