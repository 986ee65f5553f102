"""Carries plans out, and sees what becomes of them: the imperative shell around the core.

Reading order: run (one cycle), lease, pace, reach, retention; preparing, applying, recording;
pods, dispatching, observing, measuring; watching, catching, adopting; recutting, scaling,
checking.
"""
