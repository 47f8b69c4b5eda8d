"""The simulated things: robots, their surroundings, and the scenario that befalls them."""
