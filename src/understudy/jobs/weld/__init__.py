"""Weld sequences: seams in the order of a program."""
