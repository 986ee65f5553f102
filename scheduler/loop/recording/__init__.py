"""Rows that only tell: what a cycle was planned from, how long work will wait, what stands idle.

Reading order: inputs, faults, kept, forecast, pools.
"""
