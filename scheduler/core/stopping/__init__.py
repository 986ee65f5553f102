"""What is stopped by rules of its own: enforced quotas, budgets that are used up, idle devices.

Reading order: idle, enforce, used_up.
"""
