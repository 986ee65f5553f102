"""Making flavors: what quota and prices are written in. What one means is never changed: the
ledger names it. How its pods are placed may be."""

import re
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import F

from clusters import stock
from clusters.models import (
    SEVENTHS,
    Cluster,
    Device,
    Flavor,
    FlavorKind,
    FlavorPart,
    Isolation,
    Node,
    Placing,
)
from clusters.origin import CapacityType
from clusters.services import queues
from controlplane.audit import services as audit
from controlplane.kernel import hints, text
from controlplane.kernel.errors import Conflict, Invalid, NotFound, Problem
from scheduler.core import snapshot
from scheduler.core.quota import equivalents

MAX_NAME = 63
MAX_MODEL = 80
MAX_PROFILE = 20
MAX_MEMORY_MIB = 2**30
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_SPREAD = (FlavorKind.WHOLE, FlavorKind.CPU)
_TYPES = tuple(each for each in CapacityType if each)
_SHARED = (Isolation.NONE, Isolation.MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """As Flavor's fields; without a `capacity` of those of no type that has flavors of its own.
    `isolation` None: by hardware, which a share has to choose against."""

    kind: FlavorKind
    model: str = ""
    capacity: CapacityType = CapacityType.UNKNOWN
    profile: str = ""
    isolation: Isolation | None = None
    memory_mib: int = 0
    placing: Placing = Placing.PACK


def create(*, name: str, meaning: Meaning, actor: str, actor_name: str, at: datetime) -> Flavor:
    """A flavor that quotas, prices and workloads may name from now on; one of kind MODEL only
    quotas. Devices that are of its capacity type are of no flavor without one from now on; what
    holds them keeps them, and goes on to be charged as it was.

    Raises Invalid with every field at fault, Conflict when the name is taken or another flavor
    means the same.
    """
    _check(name, meaning)
    fields: dict[str, object] = {
        "name": name,
        "kind": meaning.kind.value,
        "model": meaning.model,
        "capacity": meaning.capacity.value,
        "profile": meaning.profile,
        "isolation": (meaning.isolation or Isolation.HARDWARE).value,
        "memory_mib": meaning.memory_mib,
        "placing": meaning.placing.value,
    }
    try:
        with transaction.atomic():
            flavor = Flavor.objects.create(**fields)
            _count(flavor)
            _set_apart(flavor, actor=actor, actor_name=actor_name, at=at)
            entry = audit.Entry("flavor.create", "flavor", flavor.id, after=fields)
            audit.record(actor=actor, actor_name=actor_name, entries=[entry], at=at)
            # Nodes of this model are there already, perhaps: they count from now on.
            hints.hint(hints.CYCLE)
    except IntegrityError as error:
        raise _taken(name, fields) from error
    return flavor


def place(*, id: UUID, placing: Placing, actor: str, actor_name: str, at: datetime) -> Flavor:
    """Pack, or spread, pods of the flavor from now on. What runs stays where it is.

    Raises NotFound, and Invalid for a flavor that is not whole devices or cores.
    """
    with transaction.atomic():
        flavor = Flavor.objects.select_for_update().filter(id=id).first()
        if flavor is None:
            raise NotFound("There is no such flavor.")
        if fault := _why_not_spread(FlavorKind(flavor.kind), placing):
            problem = Problem(pointer="/placing", code="invalid", message=fault)
            raise Invalid(f"/placing: {fault}", problems=(problem,))
        before, flavor.placing = flavor.placing, placing.value
        if before != flavor.placing:
            flavor.save(update_fields=["placing"])
            entry = audit.Entry(
                "flavor.place", "flavor", id, before={"placing": before},
                after={"placing": flavor.placing},
            )  # fmt: skip
            audit.record(actor=actor, actor_name=actor_name, entries=[entry], at=at)
            hints.hint(hints.CYCLE)
    return flavor


def _count(flavor: Flavor) -> None:
    """Write down what it counts of its model's quota, or what others do, if it is that quota."""
    if flavor.kind == FlavorKind.CPU:
        return
    with connection.cursor() as cursor:  # two at once would not see each other
        cursor.execute("LOCK TABLE clusters_flavorpart IN SHARE ROW EXCLUSIVE MODE")
    alike = Flavor.objects.filter(model=flavor.model, capacity=flavor.capacity).order_by("id")
    whole = alike.filter(kind=FlavorKind.MODEL).first()
    if whole is not None:
        parts = alike.exclude(id=whole.id) if whole == flavor else [flavor]
        FlavorPart.objects.bulk_create(
            FlavorPart(
                part=part,
                whole=whole,
                milli=equivalents.counts_milli(
                    kind=snapshot.FlavorKind(part.kind), model=part.model, profile=part.profile
                ),
            )
            for part in parts
        )


def _set_apart(flavor: Flavor, *, actor: str, actor_name: str, at: datetime) -> None:
    """Give it the devices of its capacity type, unless a flavor before it has. Where nothing
    started on them until now, nothing does from now on."""
    known = Flavor.objects.filter(model=flavor.model, capacity=flavor.capacity).exclude(
        id=flavor.id
    )
    if not flavor.capacity or known.exists():
        return
    # The inventory has either seen the flavor, or is done with the devices that it has stored.
    list(Cluster.objects.select_for_update(no_key=True).order_by("id"))
    of_model = Device.objects.filter(model=flavor.model)
    nodes = [
        node
        for node in Node.objects.filter(id__in=of_model.values("node"))
        if node.origin.capacity == flavor.capacity
    ]
    of_model.filter(node__in=nodes).update(capacity=flavor.capacity)
    clusters = Cluster.objects.filter(id__in={node.cluster_id for node in nodes})
    clusters.update(inventory_rev=F("inventory_rev") + 1)
    apart = stock.name(model=flavor.model, capacity=flavor.capacity)
    queues.follow(model=flavor.model, apart=apart, actor=actor, actor_name=actor_name, at=at)


def _why_not_spread(kind: FlavorKind, placing: Placing) -> str:
    if placing is Placing.PACK or kind in _SPREAD:
        return ""
    return f"Kind {kind.value} is packed always: only whole devices and CPU cores are spread."


def _check(name: str, meaning: Meaning) -> None:
    """The rules that the database holds as well, told by field."""
    found = [
        Problem(pointer=f"/{field}", code=code, message=message)
        for field, code, message in (*_texts(name, meaning), *_contradictions(meaning))
    ]
    if found:
        first = found[0]
        raise Invalid(f"{first.pointer}: {first.message}", problems=tuple(found))


def _texts(name: str, meaning: Meaning) -> list[tuple[str, str, str]]:
    found = []
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        message = f"1 to {MAX_NAME} of a-z, 0-9, . and - are wanted, . and - not at its ends."
        found.append(("name", "invalid", message))
    if (meaning.kind is FlavorKind.MODEL) != name.endswith(SEVENTHS):
        message = f"The names of kind model, which counts sevenths of a GPU, end in {SEVENTHS}"
        found.append(("name", "invalid", f"{message}, and no other names do."))
    for field, value, most in (
        ("model", meaning.model, MAX_MODEL),
        ("profile", meaning.profile, MAX_PROFILE),
    ):
        fault = text.fault(value)
        if fault:
            found.append((field, "bad-character", fault))
        elif len(value) > most:
            found.append((field, "invalid", f"At most {most} characters are wanted."))
    if not 0 <= meaning.memory_mib <= MAX_MEMORY_MIB:
        message = f"{meaning.memory_mib} is not between 0 and {MAX_MEMORY_MIB}."
        found.append(("memory_mib", "out-of-range", message))
    return found


def _contradictions(meaning: Meaning) -> list[tuple[str, str, str]]:
    kind, found = meaning.kind, []
    if kind is FlavorKind.CPU and meaning.model:
        found.append(("model", "invalid", "CPU cores have no model."))
    if kind is FlavorKind.CPU and meaning.capacity:
        found.append(
            ("capacity", "invalid", "CPU cores are of every node, whatever its capacity.")
        )
    if kind is not FlavorKind.CPU and not meaning.model:
        found.append(("model", "required", f"The model is wanted with kind {kind.value}."))
    if any(meaning.model.endswith(stock.name(model="", capacity=each)) for each in _TYPES):
        message = "A model is wanted as nodes name it: say its capacity in the field of that name."
        found.append(("model", "invalid", message))
    if kind is FlavorKind.MIG and not meaning.profile:
        found.append(("profile", "required", "The MIG profile is wanted, such as 1g.10gb."))
    if kind is not FlavorKind.MIG and meaning.profile:
        found.append(("profile", "invalid", f"Kind {kind.value} has no profile: only MIG has."))
    if kind is FlavorKind.SHARE and meaning.isolation not in _SHARED:
        code = "required" if meaning.isolation is None else "invalid"
        found.append(("isolation", code, "A share's isolation is none or memory; say which."))
    if kind is not FlavorKind.SHARE and meaning.isolation not in (None, Isolation.HARDWARE):
        found.append(("isolation", "invalid", f"Kind {kind.value} is isolated by hardware."))
    if fault := _why_not_spread(kind, meaning.placing):
        found.append(("placing", "invalid", fault))
    return found


def _taken(name: str, fields: dict[str, object]) -> Conflict:
    """Which of the two unique things it was, in a transaction that still works."""
    if Flavor.objects.filter(name=name).exists():
        return Conflict(f"There is a flavor {name!r} already.", pointer="/name")
    same = Flavor.objects.filter(
        kind=fields["kind"],
        model=fields["model"],
        capacity=fields["capacity"],
        profile=fields["profile"],
        isolation=fields["isolation"],
    ).first()
    other = f" It is called {same.name!r}." if same else ""
    return Conflict(f"There is a flavor that means the same.{other}", pointer="/kind")
