"""What pods have come to → facts → what follows for attempts and workloads.

Reading order: observe, progress, settle, lost_devices, starts, retry, requeue.
"""
