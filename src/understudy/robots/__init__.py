"""The robots, one folder each."""
