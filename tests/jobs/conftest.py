"""Compilation of a kernel may fall into any example, so no example has a deadline."""

from hypothesis import settings

settings.register_profile("jobs", deadline=None, max_examples=40)
settings.load_profile("jobs")
