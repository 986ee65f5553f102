"""Whether work may start now, where, and why not.

Reading order: order, blocked, claims, kept_quota, choice, coming, outage, admission, begun, grow.
"""
