"""Whether work may start now, where, and why not.

Reading order: order, blocked, choice, admission, grow.
"""
