"""The scheduling core: pure functions over frozen data. No Django, clock, I/O or randomness.

Reading order: units, snapshot, plan, mig, quota, share, request, fit, index, pick, draft, place,
order, limits, admission, preempt, cycle, estimate; invariants says what must come out.
"""
