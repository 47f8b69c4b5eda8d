"""Jobs for simulated and real controllers alike; the controller is passed in."""
