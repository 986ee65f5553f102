"""Work that is moved so that other work can start, and nodes that had better be cut anew.

Reading order: movers, moves, consolidate, landing, reshaping, defragment, better, recut.
"""
