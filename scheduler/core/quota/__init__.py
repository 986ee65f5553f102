"""The algebra of quota: exact integers over a tree of cohorts.

Reading order: cohorts, equivalents, portions, ledger, quota, devices, guarantees, floors, share.
"""
