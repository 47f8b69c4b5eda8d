"""The operator API of a live cell: commands and queries, one subject per module."""
