"""Where an arm brings its tool."""
