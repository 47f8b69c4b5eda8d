"""grblHAL: firmware, face, driver, and a plain machine behind it."""
