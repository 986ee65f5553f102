"""Work that is moved, so that other work can start.

Reading order: movers, moves, consolidate, landing, defragment, reshaping, recut, better.
"""
