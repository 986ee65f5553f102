"""What is held and used: from its pod's start to its end, and how much of that stands idle.

Reading order: meter, measure, idle.
"""
