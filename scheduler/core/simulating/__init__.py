"""Plan after plan: wait estimates, the impact of a change, days played again; and which nodes are
lacked.

Reading order: estimate, impact, carried, held_time, replay, needs.
"""
