"""A plain machine behind grblHAL: six axes, its settings, and how it moves."""
