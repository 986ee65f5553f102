"""Why work waits, and what would help: the checks of a plan, and changes, each tried by a plan.

Reading order: checks, change, whatif, smaller, relax, explain.
"""
