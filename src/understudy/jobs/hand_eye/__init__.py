"""Hand-eye calibration as a job of an arm, simulated or REAL."""
