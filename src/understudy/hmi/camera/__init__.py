"""The camera of a robot on pages: its settings, and the styles of its picture."""
