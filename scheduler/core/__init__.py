"""The scheduling core: pure functions over frozen data. No Django, clock, I/O or randomness.

Reading order: units, snapshot, plan, policy, reasons; then `cycle`, which makes a plan, with the
packages that it uses, each of which imports only what comes before it: node, quota, request, held,
fleet, placing, bounds, evicting and stopping, admitting, guarding and moving, sweep. `memory` has
what is kept from one plan to the next. On a cycle stand simulating and explaining. What must come
out of it: laws. Each package says what it is for and in which order to read it.
"""
