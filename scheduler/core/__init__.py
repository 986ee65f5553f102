"""The scheduling core: pure functions over frozen data. No Django, no clock, no I/O, no randomness.

Reading order: units, snapshot, plan, quota, share, fit, draft, order, place, preempt, cycle.
"""
