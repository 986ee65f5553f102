"""What is held: by whom, until when, what may come and go of it, and what would be lost.

Reading order: elastic, losses, victims, holders, candidates, runs.
"""
