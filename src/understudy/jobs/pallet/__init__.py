"""Pallets: the order of their cells, their frame, and the parts that are stacked so far."""
