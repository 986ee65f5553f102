"""Which of a node's devices are taken to be held where it is told how many are, and not which: by
foreign pods, and by pods of ours whose count token the node has lost.

So that is a choice: it stays as it is while it can, and avoids what is known to be held.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from scheduler.core.node import mig, replicas
from scheduler.core.snapshot import DeviceMode, DeviceView, NodeView
from scheduler.core.units import WHOLE_DEVICE, DeviceId, DeviceSpan, Span

UNITS = ""
"""In place of a profile: a whole device, or one replica of a shared one."""


def held_spans(
    *, node: NodeView, held: Mapping[str, int], ours: Collection[DeviceSpan]
) -> tuple[DeviceSpan, ...]:
    """What foreign pods hold: so many slices of each profile, and of UNITS.

    Those of `node.foreign` first. What there is no room for beside `ours` is left out: one of the
    two will not start, or is about to end.
    """
    taken: dict[DeviceId, int] = {}
    for device, span in ours:
        taken[device] = taken.get(device, 0) | mig.mask(span)
    return chosen(devices=node.devices, held=held, taken=taken, known=node.foreign)


def chosen(
    *,
    devices: Collection[DeviceView],
    held: Mapping[str, int],
    taken: Mapping[DeviceId, int],
    known: Iterable[DeviceSpan] = (),
) -> tuple[DeviceSpan, ...]:
    """So many slices of each profile, and of UNITS, ascending, beside what is `taken`, as far as
    there is room: what is `known` first, then from the last device on."""
    taken, found, first = dict(taken), list[DeviceSpan](), set(known)
    offers = {profile: list(_offered(devices, profile)) for profile in held}
    for profile in sorted(held, key=lambda each: (_hardest_first(offers[each]), each)):
        left = held[profile]
        for device, span in sorted(offers[profile], key=lambda offered: offered not in first):
            bits = mig.mask(span)
            if left and not taken.get(device, 0) & bits:
                taken[device] = taken.get(device, 0) | bits
                found.append((device, span))
                left -= 1
    return tuple(sorted(found))


def _hardest_first(offered: Collection[DeviceSpan]) -> tuple[int, int]:
    """Ascending, what is large and may lie in few places first: so slices find room beside each
    other, as when a device is cut."""
    return -max((span.width for _, span in offered), default=0), len(offered)


def _offered(devices: Iterable[DeviceView], profile: str) -> Iterator[DeviceSpan]:
    """From the last device on."""
    for device in sorted(devices, key=lambda each: -each.ordinal):
        for span in _of_device(device, profile):
            yield device.id, span


def _of_device(device: DeviceView, profile: str) -> Iterator[Span]:
    if device.mode is DeviceMode.MIG_STATIC:
        yield from (piece.span for piece in device.slices if piece.profile == profile)
    elif device.mode is DeviceMode.MIG_DYNAMIC:
        # From the last start on: what has its place at 0 alone finds that free.
        yield from reversed(mig.legal_spans(model=device.model, profile=profile))
    elif profile == UNITS and device.shares is None:
        yield WHOLE_DEVICE
    elif profile == UNITS:
        width = replicas.width_milli(replicas=device.replicas)
        for nth in range(device.replicas):
            yield Span(nth * width, (nth + 1) * width)
