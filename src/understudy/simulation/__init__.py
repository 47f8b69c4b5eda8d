"""What every cell has: parts on one time axis, engine, scenario, environment, collision watch."""
