"""The same plan for many at once, compiled; what arrays can't decide is handed out to be decided
by hand. `placing`, `evicting` and `guarding` are as the packages of those names.

Reading order: state, backlog, tree, hardware, queues, filling, charging, placing, evicting,
guarding, starting, running, telling, writing, totals, sweep.
"""
