"""Clusters → Berth: lists and watches, nodes and devices, and what others hold on them.

Reading order: watch, readers, doubts, hardware, published, claimed, foreign, strays, inspect.
"""
