"""Who leaves for whom, at least harm.

Reading order: eligible, cheapest, search, per_pod, twice, preempt.
"""
