"""The fleet page: a map of the mobile robots."""
