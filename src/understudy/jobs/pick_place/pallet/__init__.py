"""Pallets: the order of their cells, their frame, safe heights, and the cells out of reach."""
