"""What fits on one node, and on which of its devices and spans: `fit` is the test that planner and
applier share. How nodes with shared devices are compared, and how devices had better be cut.

Reading order: mig, replicas, isolation, stand_ins, foreign, fit, shapes, prices, fragmentation,
jit, slices, pick, reshape, ways, advice.
"""
