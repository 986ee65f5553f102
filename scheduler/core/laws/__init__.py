"""What must hold of every plan, checked apart from the code that makes it.

Reading order: invariants, which asks all others; tree, shares, caps, budgets, counted, elastic,
moves, idle, enforce, used_up.
"""
