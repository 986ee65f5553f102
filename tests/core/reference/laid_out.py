"""Whether groups of pods find domains, by trying all."""

from collections.abc import Iterator, Mapping, Sequence


def can_be_laid_out(groups: Sequence[tuple[str, int]], free: Mapping[str, int]) -> bool:
    """Brute force: whether each group, of a level and so many pods of one device, "" for anywhere,
    finds a domain. `free` counts the devices of each rack, which is named zone/rack."""
    if not groups:
        return True
    (level, pods), *rest = groups
    zones = {rack.split("/")[0] for rack in free}
    domains = {
        "": [list(free)],
        "rack": [[rack] for rack in free],
        "zone": [[rack for rack in free if rack.startswith(zone)] for zone in zones],
    }[level]
    return any(
        can_be_laid_out(rest, left) for racks in domains for left in _takings(pods, racks, free)
    )


def _takings(
    pods: int, racks: Sequence[str], free: Mapping[str, int]
) -> Iterator[Mapping[str, int]]:
    """What is left by each way of taking so many devices from these racks."""
    if not racks:
        yield from () if pods else (free,)
        return
    first, *others = racks
    for here in range(min(pods, free[first]) + 1):
        yield from _takings(pods - here, others, {**free, first: free[first] - here})
