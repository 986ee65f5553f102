"""Loaded by pytest as a plugin: hypothesis says the same of a mutant each time, and soon."""

from hypothesis import settings

settings.register_profile(
    "mutation", derandomize=True, max_examples=20, database=None, deadline=None
)
settings.load_profile("mutation")
