"""The digital and analog pins of a controller, in a running cell and in the offline check."""
