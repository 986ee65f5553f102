"""Where a pod goes, compiled: what `index`, `pick` and `place` do, with the same ties."""

from scheduler.core.sweep.state import ACCEPTED as FLAVORS_OF
from scheduler.core.sweep.state import (
    AMOUNT,
    CHARGED,
    CORES,
    CORES_ENTRY,
    CORES_POOL,
    COST,
    COUNT,
    COUNTED,
    CPU,
    CPU_BITS,
    CUT,
    CUTS,
    ENTRY,
    FIRST,
    FIRST_SLICE,
    FLAVOR_KIND,
    GPUS,
    KIND,
    LEAST,
    LEVEL_SHIFT,
    MASKS,
    MEMORY,
    MOST_CPU,
    NODE_BITS,
    NODE_CPU,
    NODE_MEMORY,
    OF_DEVICES,
    OF_NODE,
    OF_OPTION,
    OF_SET,
    OF_WORKLOAD,
    PLACED,
    POOL,
    SETS,
    SETS_BEYOND,
    SIZE,
    SLICED,
    SPARE,
    STARTS,
    TAKEN,
    TOTAL,
    TRIED,
    USABLE,
    WHOLE,
    Flavors,
    Hardware,
    Ints,
    Log,
    Work,
    compiled,
)

__all__ = ["fill", "free", "gang", "refresh", "undo"]


@compiled
def _at(entries: Ints, low: int, high: int, entry: int) -> int:
    """The first place from `low` before `high` whose entry is no less."""
    while low < high:
        middle = (low + high) >> 1
        if entries[middle] < entry:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _entry(level: int, cpu: int, node: int) -> int:
    return (level << LEVEL_SHIFT) | ((cpu + 1) << NODE_BITS) | node


@compiled
def _cpu_of(entry: int) -> int:
    return ((entry >> NODE_BITS) & ((1 << CPU_BITS) - 1)) - 1


@compiled
def _move(h: Hardware, pool: int, old: int, new: int) -> None:
    """Put the entry `new` in the place of `old`; -1 is none."""
    entries, first, size = h.entries, h.pools[pool, FIRST], h.pools[pool, SIZE]
    beyond = first + size
    if h.pools[pool, KIND] != CUT:
        for entry, sign in ((old, -1), (new, 1)):
            if entry >= 0 and h.pools[pool, KIND] == WHOLE:
                h.pools[pool, TOTAL] += sign * (entry >> LEVEL_SHIFT)
            elif entry >= 0:
                h.pools[pool, TOTAL] += sign * max(_cpu_of(entry), 0)
    if old < 0:
        j = _at(entries, first, beyond, new)
        for k in range(beyond, j, -1):
            entries[k] = entries[k - 1]
        entries[j] = new
        h.pools[pool, SIZE] = size + 1
        return
    i = _at(entries, first, beyond, old)
    if new < 0:
        for k in range(i, beyond - 1):
            entries[k] = entries[k + 1]
        h.pools[pool, SIZE] = size - 1
    elif new > old:
        j = _at(entries, i, beyond, new) - 1
        for k in range(i, j):
            entries[k] = entries[k + 1]
        entries[j] = new
    else:
        j = _at(entries, first, i, new)
        for k in range(i, j, -1):
            entries[k] = entries[k - 1]
        entries[j] = new


@compiled
def _whole_entry(h: Hardware, node: int, pool: int, cpu: int) -> int:
    level = 0
    for d in range(h.devices.shape[1]):
        if h.devices[node, d, POOL] == pool and h.devices[node, d, TAKEN] == 0:
            level += 1
    return _entry(level, cpu, node) if level else -1


@compiled
def _cores_entry(h: Hardware, node: int, cpu: int) -> int:
    if h.nodes[node, USABLE] < 0:
        return -1
    level = 0
    if h.nodes[node, USABLE]:
        level = 1
        for d in range(h.devices.shape[1]):
            if h.devices[node, d, TAKEN] == 0:
                level += 1
    return _entry(level, cpu, node)


@compiled
def _cut_entry(h: Hardware, node: int, device: int, cpu: int) -> int:
    pool, bits = h.devices[node, device, POOL], h.devices[node, device, TAKEN]
    if bits < 0:
        return -1
    for other in range(device):  # one entry does for all that are alike
        if h.devices[node, other, POOL] == pool and h.devices[node, other, TAKEN] == bits:
            return -1
    return _entry(bits, cpu, node)


@compiled
def refresh(h: Hardware, node: int) -> None:
    """The node has changed."""
    cpu = min(max(h.nodes[node, NODE_CPU], -1), MOST_CPU)
    for n in range(h.wholes.shape[1]):
        pool, old = h.wholes[node, n, POOL], h.wholes[node, n, ENTRY]
        if pool >= 0:
            new = _whole_entry(h, node, pool, cpu)
            if new != old:
                h.wholes[node, n, ENTRY] = new
                _move(h, pool, old, new)
    pool, old = h.nodes[node, CORES_POOL], h.nodes[node, CORES_ENTRY]
    if pool >= 0:
        new = _cores_entry(h, node, cpu)
        if new != old:
            h.nodes[node, CORES_ENTRY] = new
            _move(h, pool, old, new)
    for d in range(h.devices.shape[1]):
        pool, old = h.devices[node, d, POOL], h.devices[node, d, ENTRY]
        if pool < 0 or h.pools[pool, KIND] != CUT:
            continue
        new = _cut_entry(h, node, d, cpu)
        if new != old:
            h.devices[node, d, ENTRY] = new
            _move(h, pool, old, new)
        _count(h, node, d, pool)


@compiled
def _count(h: Hardware, node: int, d: int, pool: int) -> None:
    old, new = h.devices[node, d, COUNTED], h.devices[node, d, TAKEN]
    if old >= 0:
        h.pools[pool, TOTAL + old] -= 1
    if new >= 0:
        h.pools[pool, TOTAL + new] += 1
    h.devices[node, d, COUNTED] = new


@compiled
def fill(h: Hardware) -> None:
    """Put all nodes into their pools, which are empty; the entries of each are left unsorted."""
    for node in range(h.nodes.shape[0]):
        cpu = min(max(h.nodes[node, NODE_CPU], -1), MOST_CPU)
        for n in range(h.wholes.shape[1]):
            pool = h.wholes[node, n, POOL]
            if pool >= 0:
                h.wholes[node, n, ENTRY] = _whole_entry(h, node, pool, cpu)
                _append(h, pool, h.wholes[node, n, ENTRY])
        if h.nodes[node, CORES_POOL] >= 0:
            h.nodes[node, CORES_ENTRY] = _cores_entry(h, node, cpu)
            _append(h, h.nodes[node, CORES_POOL], h.nodes[node, CORES_ENTRY])
        for d in range(h.devices.shape[1]):
            pool = h.devices[node, d, POOL]
            if pool >= 0 and h.pools[pool, KIND] == CUT:
                h.devices[node, d, ENTRY] = _cut_entry(h, node, d, cpu)
                _append(h, pool, h.devices[node, d, ENTRY])
                _count(h, node, d, pool)


@compiled
def _append(h: Hardware, pool: int, entry: int) -> None:
    if entry < 0:
        return
    h.entries[h.pools[pool, FIRST] + h.pools[pool, SIZE]] = entry
    h.pools[pool, SIZE] += 1
    if h.pools[pool, KIND] == WHOLE:
        h.pools[pool, TOTAL] += entry >> LEVEL_SHIFT
    elif h.pools[pool, KIND] == CORES:
        h.pools[pool, TOTAL] += max(_cpu_of(entry), 0)


@compiled
def free(h: Hardware, f: Flavors, flavor: int, cluster: int) -> int:
    """As `space.free_milli`."""
    pool = f.pool_of[flavor, cluster]
    if pool < 0:
        return 0
    if h.pools[pool, KIND] == CORES:
        total: int = h.pools[pool, TOTAL]
        return total
    if h.pools[pool, KIND] == WHOLE:
        devices: int = h.pools[pool, TOTAL]
        return devices * 1000
    starts = 0
    for bits in range(MASKS):
        starts += h.pools[pool, TOTAL + bits] * f.cuts[flavor, bits, STARTS]
    return starts * 1000


@compiled
def _seek(h: Hardware, log: Log, pod: Ints, pool: int) -> int:
    """The best node for one more pod of whole devices or of cores, or -1; it takes its devices."""
    kind = h.pools[pool, KIND]
    level = pod[GPUS] if kind == WHOLE else 0
    first, beyond = h.pools[pool, FIRST], h.pools[pool, FIRST] + h.pools[pool, SIZE]
    at = _at(h.entries, first, beyond, _entry(level, pod[CPU], 0))
    while at < beyond:
        entry = h.entries[at]
        if _cpu_of(entry) < pod[CPU]:
            at = _at(h.entries, at, beyond, _entry(entry >> LEVEL_SHIFT, pod[CPU], 0))
            continue
        node = entry & ((1 << NODE_BITS) - 1)
        if h.nodes[node, NODE_MEMORY] >= pod[MEMORY]:
            devices, left = 0, pod[GPUS] if kind == WHOLE else 0
            for d in range(h.devices.shape[1]):
                if left and h.devices[node, d, POOL] == pool and h.devices[node, d, TAKEN] == 0:
                    h.devices[node, d, TAKEN] = 1
                    devices |= 1 << d
                    left -= 1
            log.places[log.counts[PLACED], OF_DEVICES] = devices
            return int(node)
        at += 1
    return -1


@compiled
def _seek_slices(h: Hardware, f: Flavors, log: Log, pod: Ints, flavor: int, pool: int) -> int:
    first, beyond = h.pools[pool, FIRST], h.pools[pool, FIRST] + h.pools[pool, SIZE]
    for n in range(MASKS):
        bits = f.cuts[flavor, n, TRIED]
        if bits < 0:
            break
        if h.pools[pool, TOTAL + bits] == 0:
            continue
        at = _at(h.entries, first, beyond, _entry(bits, pod[CPU], 0))
        while at < beyond and h.entries[at] >> LEVEL_SHIFT == bits:
            node = h.entries[at] & ((1 << NODE_BITS) - 1)
            fits = h.nodes[node, NODE_MEMORY] >= pod[MEMORY]
            if fits and _slice(h, f, log, pod[GPUS], flavor, pool, node):
                return int(node)
            at += 1
    return -1


@compiled
def _slice(
    h: Hardware, f: Flavors, log: Log, count: int, flavor: int, pool: int, node: int
) -> bool:
    """Cut so many slices, each where it costs least; False leaves the node as it was."""
    begin = log.counts[SLICED]
    for n in range(count):
        best, least = -1, 0
        for d in range(h.devices.shape[1]):
            bits = h.devices[node, d, TAKEN]
            if h.devices[node, d, POOL] == pool and bits >= 0:
                cost = f.cuts[flavor, bits, COST]
                if cost >= 0 and (best < 0 or cost < least):
                    best, least = d, cost
        if best < 0:
            for k in range(begin, begin + n):
                h.devices[node, log.slices[k, 0], TAKEN] &= ~log.slices[k, 1]
            return False
        cut = f.cuts[flavor, h.devices[node, best, TAKEN], CUTS]
        log.slices[begin + n, 0], log.slices[begin + n, 1] = best, cut
        h.devices[node, best, TAKEN] |= cut
    log.places[log.counts[PLACED], OF_DEVICES] = 0
    log.places[log.counts[PLACED], FIRST_SLICE] = begin
    log.counts[SLICED] = begin + count
    return True


@compiled
def _put(
    h: Hardware, f: Flavors, w: Work, log: Log, workload: int, row: int, option: int,
    flavor: int, cluster: int,
) -> bool:  # fmt: skip
    """One more pod of that row of `sets`."""
    pod, pool = w.sets[row], f.pool_of[flavor, cluster]
    if pool < 0 or pod[CPU] > MOST_CPU:
        return False
    if f.flavors[flavor, FLAVOR_KIND] == CUT:
        node = _seek_slices(h, f, log, pod, flavor, pool)
    else:
        node = _seek(h, log, pod, pool)
    if node < 0:
        return False
    place = log.counts[PLACED]
    log.places[place, OF_WORKLOAD], log.places[place, OF_SET] = workload, row
    log.places[place, OF_OPTION], log.places[place, OF_NODE] = option, node
    log.counts[PLACED] = place + 1
    h.nodes[node, NODE_CPU] -= pod[CPU]
    h.nodes[node, NODE_MEMORY] -= pod[MEMORY]
    refresh(h, node)
    return True


@compiled
def undo(h: Hardware, w: Work, log: Log, mark: int) -> None:
    """Take back all places since `mark`, latest first."""
    while log.counts[PLACED] > mark:
        place = log.counts[PLACED] - 1
        log.counts[PLACED] = place
        node, row = log.places[place, OF_NODE], log.places[place, OF_SET]
        devices = log.places[place, OF_DEVICES]
        if devices:
            for d in range(h.devices.shape[1]):
                if devices >> d & 1:
                    h.devices[node, d, TAKEN] = 0
        elif w.sets[row, GPUS]:
            for k in range(log.places[place, FIRST_SLICE], log.counts[SLICED]):
                h.devices[node, log.slices[k, 0], TAKEN] &= ~log.slices[k, 1]
            log.counts[SLICED] = log.places[place, FIRST_SLICE]
        h.nodes[node, NODE_CPU] += w.sets[row, CPU]
        h.nodes[node, NODE_MEMORY] += w.sets[row, MEMORY]
        refresh(h, node)


@compiled
def gang(
    h: Hardware, f: Flavors, w: Work, log: Log, workload: int, request: int, option: int,
    cluster: int,
) -> bool:  # fmt: skip
    """The least start, and as much more as there is room and quota for; False changes nothing."""
    mark = log.counts[PLACED]
    first, beyond = w.requests[request, SETS], w.requests[request, SETS_BEYOND]
    accepted = w.options[option, FLAVORS_OF] - first
    for flavor in range(f.flavors.shape[0]):
        f.flavors[flavor, CHARGED] = 0
    for row in range(first, beyond):
        flavor = w.accepted[accepted + row]
        f.flavors[flavor, CHARGED] += w.sets[row, LEAST] * w.sets[row, AMOUNT]
        for _ in range(w.sets[row, LEAST]):
            if not _put(h, f, w, log, workload, row, option, flavor, cluster):
                undo(h, w, log, mark)
                return False
    for row in range(first, beyond):
        flavor = w.accepted[accepted + row]
        for _ in range(w.sets[row, COUNT] - w.sets[row, LEAST]):
            if f.flavors[flavor, SPARE] - f.flavors[flavor, CHARGED] < w.sets[row, AMOUNT]:
                break
            if not _put(h, f, w, log, workload, row, option, flavor, cluster):
                break
            f.flavors[flavor, CHARGED] += w.sets[row, AMOUNT]
    return bool(log.counts[PLACED] > mark)
