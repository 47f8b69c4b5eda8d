"""Reachability: single poses, programs, maps of the workspace, and their export."""
