"""Attacks on which flavors a project prefers."""

from clusters.models import Flavor
from scheduler.models import PodSet
from tenants.models import MAX_PREFERRED, PreferredFlavor
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import change, copy
from tests.constraints.rows import make

ATTACKS = (
    Attack(
        "preferred_flavor_once", "a flavor is preferred twice", copy(PreferredFlavor, position=9)
    ),
    Attack(
        "preferred_position_once",
        "two flavors are preferred first",
        copy(PreferredFlavor, flavor_id=lambda: make(Flavor).pk),
    ),
    Attack(
        "preferred_position_in_range",
        "more are preferred than pods accept",
        change(PreferredFlavor, position=MAX_PREFERRED),
    ),
    negative("tenants_preferredflavor_position_check", PreferredFlavor, "position"),
    Attack(
        "pod_set_wishes_or_as_preferred",
        "pods wish, and leave it to their project",
        change(PodSet, {"gpu_count": 1, "least_memory_mib": 1}, as_preferred=True),
    ),
    Attack(
        "pod_set_any_order_of_named",
        "what is wished has no order",
        change(PodSet, {"gpu_count": 1, "least_memory_mib": 1}, any_order=True),
    ),
    Attack(
        "pod_set_any_order_of_named",
        "what a project prefers has no order",
        change(PodSet, {"as_preferred": True}, any_order=True),
    ),
)
