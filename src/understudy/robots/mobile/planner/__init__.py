"""The built-in planner: routes for robots without a backend, on a grid or on a graph."""
