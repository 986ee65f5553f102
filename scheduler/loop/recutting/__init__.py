"""Nodes that are cut anew into slices, step by step.

Reading order: recuts, steps, states, ways, emptying, own_recuts.
"""
