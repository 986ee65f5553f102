"""Primary keys: UUID version 7 (RFC 9562), so that id order is creation order and ids tell nothing
about other tenants' numbers."""

import os
import threading
import time
import uuid

_lock = threading.Lock()
_last = 0


def uuid7() -> uuid.UUID:
    """A new id; within one process each is greater than the one before it."""
    global _last
    with _lock:
        # 48 bits of milliseconds and 12 bits of their fraction (RFC 9562, 6.2 method 3).
        stamp = time.time_ns() * 4096 // 1_000_000
        _last = stamp = max(stamp, _last + 1)
    value = (stamp >> 12) << 80 | 0x7 << 76 | (stamp & 0xFFF) << 64
    value |= 0b10 << 62 | int.from_bytes(os.urandom(8)) >> 2
    return uuid.UUID(int=value)


def least_since(ago_s: int) -> uuid.UUID:
    """No id that was made in the last so many seconds of real time is less."""
    return uuid.UUID(int=(time.time_ns() // 1_000_000 - ago_s * 1000) << 80)
