"""Mobile robots in MOCK mode: the drive, the axes, the world and the sensors of many robots."""
