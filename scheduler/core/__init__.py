"""The scheduling core: pure functions over frozen data. No Django, clock, I/O or randomness.

Reading order: units, snapshot, plan, mig, cohorts, quota, request, fit, share, index, pick, draft,
place, order, limits, victims, evict, preempt, admission, cycle, estimate. What must come out of
it: invariants.
"""
