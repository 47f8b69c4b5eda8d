"""Distances, contacts and certified sweeps."""
