"""Contacts of a moving arm: its body, the sweep of its path ahead of the motion, other arms."""
