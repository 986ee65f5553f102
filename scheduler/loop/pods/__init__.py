"""Which pods a cluster is to have: those of placements, and who acts on which; those that others
made, as rows.

Reading order: claims, requests, caught.
"""
