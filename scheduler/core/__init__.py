"""The scheduling core: pure functions over frozen data. No Django, clock, I/O or randomness.

Here: what goes into a plan (`snapshot`), what comes out of it (`plan`), and `cycle`, which makes
one. The rooms, each of which imports only what comes before it: node, quota, held, fleet, placing,
bounds, evicting and stopping, admitting, guarding and moving, sweep; on a cycle stand simulating
and explaining. What must come out of it: laws. Each room says what it is for and in which order to
read it.
"""
