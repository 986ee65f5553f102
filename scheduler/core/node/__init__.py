"""What fits on one node, and on which of its devices and spans: `fit` is the test that planner and
applier share.

Reading order: mig, replicas, fit, shapes, prices, fragmentation, slices, pick, reshape, ways.
"""
