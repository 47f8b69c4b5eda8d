"""Mathematics of cameras: lens, pictures, markers and hand-eye calibration."""
