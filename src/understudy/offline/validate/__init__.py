"""Validation of a program before a robot runs it: violations line by line, and the cycle time."""
