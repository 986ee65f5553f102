"""Pods that others made → workloads of ours.

Reading order: catch, grouping, asking, vanished.
"""
