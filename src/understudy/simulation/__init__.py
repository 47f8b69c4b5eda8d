"""Parts that every cell has: the cell itself, engine, scenario, environment, collision watch."""
