"""A plan → rows: what starts, what grows and shrinks, what waits and why.

Reading order: apply, arrays, holds, landings, used_up, enforcement, resize.
"""
