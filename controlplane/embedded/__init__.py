"""PostgreSQL and Valkey from wheels, for the demo and the tests.

What must not live here: anything a real installation needs; it brings its own servers.
"""
