"""Who leaves for whom, at least harm.

Reading order: eligible, enough, cheapest, search, per_pod, twice, preempt.
"""
