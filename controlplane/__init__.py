"""Composition root (settings, urls, celery, portal) and shared kernel."""
