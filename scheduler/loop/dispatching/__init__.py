"""Rows → clusters: namespaces confined, pods made, opened and taken away.

Reading order: dispatch, calls, confine, walls, collect.
"""
