"""Modes of operation of a robot, and the changeover between them."""
