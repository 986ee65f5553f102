"""What is due before a plan: who may start by now, and who is to give way.

Reading order: dependencies, gates, drain, defrag.
"""
