"""What keeps work from starting whatever is free: reservations, what others may want back, what
could never start, budgets, caps.

Reading order: windows, firm, limits, budgets, caps.
"""
