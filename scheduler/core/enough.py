"""Whether there would be devices enough if all went who may go: a quick no, before a search."""

from collections.abc import Callable, Iterable

from scheduler.core.draft import Draft
from scheduler.core.request import Option
from scheduler.core.snapshot import FlavorKind
from scheduler.core.space import free_milli
from scheduler.core.units import ONE_MILLI, ClusterId
from scheduler.core.victims import Held


def are_enough(
    *, soon: Draft, option: Option, cluster: ClusterId, evictable: Callable[[], Iterable[Held]]
) -> bool:
    """Whether the whole devices that the least start asks for are free in the cluster, or held,
    if only in part, by those `evictable`. Of other flavors nothing is known here."""
    asked = dict(option.needs)
    for flavor in option.flavors:
        if flavor.kind is not FlavorKind.WHOLE:
            continue
        lacking_milli = asked[flavor.id] - free_milli(draft=soon, cluster=cluster, flavor=flavor)
        for held in evictable() if lacking_milli > 0 else ():
            lacking_milli -= _devices(soon, held, flavor.model) * ONE_MILLI
            if lacking_milli <= 0:
                break
        if lacking_milli > 0:
            return False
    return True


def _devices(soon: Draft, held: Held, model: str) -> int:
    """Of the model, those that it holds something of, or more."""
    found = 0
    for node, placements in held.on.items():
        devices = soon.rooms[node].devices if node in soon.rooms else {}
        for placement in placements:
            ids = [id for id, _ in placement.spans if id in devices]
            found += sum(devices[id].model == model for id in ids)
    return found
