"""The text robot: a free Cartesian pose that is commanded by lines of text over TCP."""
