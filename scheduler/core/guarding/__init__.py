"""What is kept for who has waited long, and who may use it meanwhile (ADR 0020).

Reading order: backfill, quota_guard, room_guard, ahead, overtaken.
"""
