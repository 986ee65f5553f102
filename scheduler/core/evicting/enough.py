"""Whether there would be devices enough if all went who may go: a quick no, before a search."""

from collections.abc import Callable, Iterable

from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.space import free_milli
from scheduler.core.held.victims import Held
from scheduler.core.request import Option
from scheduler.core.snapshot import FlavorKind
from scheduler.core.units import ONE_MILLI, ClusterId


def are_enough(
    *, soon: Draft, option: Option, cluster: ClusterId, evictable: Callable[[], Iterable[Held]]
) -> bool:
    """Whether the whole devices that the least start asks for are free in the cluster, or held,
    if only in part, by those `evictable`. Of other flavors nothing is known here."""
    asked = dict(option.needs)
    for flavor in option.flavors:
        if flavor.kind is not FlavorKind.WHOLE:
            continue
        of_model = [id for id, other in soon.flavors.items() if other.model == flavor.model]
        lacking_milli = asked[flavor.id] - free_milli(draft=soon, cluster=cluster, flavor=flavor)
        for held in evictable() if lacking_milli > 0 else ():
            devices = held.devices
            lacking_milli -= sum([devices.get(of, 0) for of in of_model]) * ONE_MILLI
            if lacking_milli <= 0:
                break
        if lacking_milli > 0:
            return False
    return True
