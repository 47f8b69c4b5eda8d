"""The 3D scene of the cell, as pages place it, and its scripts."""
