"""What is held: by whom, until when, what may come and go of it, what would be lost, and how those
who go are told.

Reading order: elastic, losses, victims, holders, least_lost, candidates, runs, shrinks.
"""
