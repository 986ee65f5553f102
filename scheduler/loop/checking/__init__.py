"""The rules about rows, looked for in the rows alone; and what a breach stops.

Reading order: rules, promises, lent, invariants, checks.
"""
