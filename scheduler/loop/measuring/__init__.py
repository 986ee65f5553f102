"""What is held and used, from its pod's start to its end; what stands idle is told, and freed.

Reading order: meter, measure, idle.
"""
