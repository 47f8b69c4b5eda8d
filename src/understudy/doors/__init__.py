"""Doors into a running cell beside its own: each is a folder and a row of the registry."""
