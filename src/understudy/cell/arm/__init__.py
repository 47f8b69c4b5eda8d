"""A simulated arm: the controller a real grblHAL-driven one would be."""
