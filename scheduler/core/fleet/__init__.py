"""Many nodes: what is free where, which stand together, and drafts in which it is tried.

Reading order: index, domains, world, packed, draft, space, node_pools, pools.
"""
