"""pytest plugin: a robot as a fixture, on virtual time."""
