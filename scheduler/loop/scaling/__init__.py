"""Nodes that clusters are asked for, and given back.

Reading order: node_asks, ways.
"""
