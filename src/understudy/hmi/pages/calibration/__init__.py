"""The calibration page."""
