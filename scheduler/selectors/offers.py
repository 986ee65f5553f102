"""What a submitter may choose from: each flavor with its price and what is free of it now."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from clusters.models import Cluster, ClusterState, Flavor, FlavorKind, Isolation
from clusters.selectors import flavors_by_kind
from scheduler.selectors import capacity
from tenants.selectors.prices import Prices


@dataclass(frozen=True, slots=True)
class There:
    """A flavor in one cluster that takes new work."""

    cluster: str
    total_milli: int
    free_milli: int
    price: Decimal | None


@dataclass(frozen=True, slots=True)
class Offer:
    """A flavor as one chooses it. Prices are per whole unit and hour, None while there is none;
    they differ when clusters have their own. Without `places` no usable cluster has any."""

    id: UUID
    name: str
    kind: str
    model: str
    profile: str
    isolation: str
    memory_mib: int
    low: Decimal | None
    high: Decimal | None
    places: tuple[There, ...]

    @property
    def free_milli(self) -> int:
        return sum(place.free_milli for place in self.places)

    @property
    def total_milli(self) -> int:
        return sum(place.total_milli for place in self.places)

    @property
    def used_milli(self) -> int:
        return self.total_milli - self.free_milli

    @property
    def unit(self) -> str:
        return UNITS[FlavorKind(self.kind)]

    @property
    def memory_gib(self) -> str:
        return f"{self.memory_mib / 1024:.3g}"

    @property
    def isolation_text(self) -> str:
        """What keeps its neighbours apart, in words."""
        if self.kind == FlavorKind.SHARE:
            return SHARED[Isolation(self.isolation)]
        return APART[FlavorKind(self.kind)]


UNITS = {
    FlavorKind.WHOLE: "GPU",
    FlavorKind.MIG: "slice",
    FlavorKind.SHARE: "GPU",
    FlavorKind.CPU: "core",
}
"""What one unit of a flavor is called, and priced as."""
APART = {
    FlavorKind.WHOLE: "Whole GPU, nothing shared",
    FlavorKind.MIG: "Hardware slice: own memory and compute",
    FlavorKind.CPU: "No GPU",
}
SHARED = {
    Isolation.NONE: "None: neighbours take turns and share its memory",
    Isolation.MEMORY: "Memory limits only: a fault hits the neighbours too",
    Isolation.HARDWARE: "Hardware",
}
TAGS = {
    Isolation.NONE: "no isolation",
    Isolation.MEMORY: "memory limits only",
    Isolation.HARDWARE: "",
}
"""As `SHARED`, in a tag beside what is shared; "" for what nobody shares."""


def offers(*, prices: Prices) -> tuple[Offer, ...]:
    """Every flavor, in the order of `flavors_by_kind`. Six queries."""
    flavors = flavors_by_kind()
    names = dict(Cluster.objects.filter(state=ClusterState.ACTIVE).values_list("id", "name"))
    found = capacity.by_flavor_and_cluster(flavors=flavors)
    return tuple(_offer(flavor, found, names, prices) for flavor in flavors)


def by_name(listed: Iterable[Offer], name: str) -> Offer | None:
    return next((offer for offer in listed if offer.name == name), None)


def _offer(
    flavor: Flavor,
    capacities: Sequence[capacity.Capacity],
    clusters: dict[UUID, str],
    prices: Prices,
) -> Offer:
    here = [one for one in capacities if one.flavor_id == flavor.id and one.usable]
    places = []
    for one in here:
        price = prices.of(flavor_id=flavor.id, cluster_id=one.cluster_id)
        name = clusters.get(one.cluster_id, "")
        places.append(
            There(name, one.total_milli, one.free_milli, price.per_hour if price else None)
        )
    span = prices.span(flavor_id=flavor.id, clusters=[one.cluster_id for one in here])
    return Offer(
        id=flavor.id,
        name=flavor.name,
        kind=flavor.kind,
        model=flavor.model,
        profile=flavor.profile,
        isolation=flavor.isolation,
        memory_mib=flavor.memory_mib,
        low=span[0].per_hour if span else None,
        high=span[1].per_hour if span else None,
        places=tuple(sorted(places, key=lambda place: place.cluster)),
    )
