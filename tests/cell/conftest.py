"""Compilation of a kernel may fall into any example, so no example has a deadline."""

from hypothesis import settings

settings.register_profile("cell", deadline=None, max_examples=60)
settings.load_profile("cell")
