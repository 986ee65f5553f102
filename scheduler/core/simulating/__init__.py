"""Plan after plan: wait estimates, the impact of a change, days played again.

Reading order: estimate, impact, carried, replay, needs.
"""
