"""Where pods go: one by one, and gangs as a whole.

Reading order: layouts, gang, place, together.
"""
