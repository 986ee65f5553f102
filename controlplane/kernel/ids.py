"""Primary keys: UUID version 7 (RFC 9562), so that id order is creation order and ids tell nothing
about other tenants' numbers."""

import os
import struct
import threading
import time
import uuid

_lock = threading.Lock()
_last = 0
_VERSION = 0x7 << 76 | 0b10 << 62


def uuid7() -> uuid.UUID:
    """A new id; within one process each is greater than the one before it."""
    return uuid7s(1)[0]


def uuid7s(count: int) -> list[uuid.UUID]:
    """So many new ids, in order, at less than half of what they cost one by one."""
    global _last
    with _lock:
        # 48 bits of milliseconds and 12 bits of their fraction (RFC 9562, 6.2 method 3).
        first = max(time.time_ns() * 4096 // 1_000_000, _last + 1)
        _last = first + count - 1
    random = struct.unpack(f"{count}Q", os.urandom(8 * count))
    return [
        uuid.UUID(int=(stamp >> 12) << 80 | (stamp & 0xFFF) << 64 | _VERSION | bits >> 2)
        for stamp, bits in enumerate(random, first)
    ]


def least_since(ago_s: int) -> uuid.UUID:
    """No id that was made in the last so many seconds of real time is less."""
    return uuid.UUID(int=(time.time_ns() // 1_000_000 - ago_s * 1000) << 80)
