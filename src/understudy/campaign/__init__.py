"""Campaigns: one cell, many runs with other seeds and other values, and what came of them."""
