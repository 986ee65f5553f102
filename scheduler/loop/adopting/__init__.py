"""Pods of ours that the database does not know → attempts of their workloads, or strays.

Reading order: unknown, adopt, berths.
"""
