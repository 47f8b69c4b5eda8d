"""Drivers against the simulated robots of the same house."""
