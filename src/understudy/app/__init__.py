"""Composition: cell file → cell, cell → sockets and wall clock."""
