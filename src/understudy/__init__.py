"""Stand-in robots: a robot cell that is not there, but answers on the wire as the real one does."""

__version__ = "0.1.0"
