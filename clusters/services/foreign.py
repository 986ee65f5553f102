"""What pods that are not Berth's hold → rows."""

from collections.abc import Collection, Mapping

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import NumericRange
from django.db.models import F, QuerySet

from clusters.models import Cluster, Device, ForeignSpan, Node

type SpanRow = tuple[str, int, int]
"""A device's id, and [start, end) of its axis."""


def sync(
    *,
    cluster: Cluster,
    amounts: Mapping[str, tuple[int, int]],
    spans: Collection[SpanRow],
    among: Collection[str] | None = None,
) -> bool:
    """Make the rows as that says: node name → (cpu_milli, memory_mib), and spans of devices; of
    the nodes named `among` alone, where they are. True when anything changed. Devices that are
    unknown by now are passed over."""
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        nodes = Node.objects.filter(cluster=cluster)
        if among is not None:
            nodes = nodes.filter(name__in=among)
        changed = _sync_amounts(nodes, amounts)
        changed |= _sync_spans(nodes, spans)
        if changed:
            Cluster.objects.filter(pk=cluster.pk).update(inventory_rev=F("inventory_rev") + 1)
    return changed


def _sync_amounts(nodes: QuerySet[Node], amounts: Mapping[str, tuple[int, int]]) -> bool:
    edited = []
    for node in nodes.filter(gone_at__isnull=True):
        cpu_milli, memory_mib = amounts.get(node.name, (0, 0))
        if (node.foreign_cpu_milli, node.foreign_memory_mib) != (cpu_milli, memory_mib):
            node.foreign_cpu_milli, node.foreign_memory_mib = cpu_milli, memory_mib
            edited.append(node)
    Node.objects.bulk_update(edited, ["foreign_cpu_milli", "foreign_memory_mib"], batch_size=500)
    return bool(edited)


def _sync_spans(nodes: QuerySet[Node], spans: Collection[SpanRow]) -> bool:
    wanted = set(spans)
    lost = []
    for row in ForeignSpan.objects.filter(device__node__in=nodes):
        key = str(row.device_id), row.span.lower, row.span.upper
        if key in wanted:
            wanted.remove(key)
        else:
            lost.append(row.pk)
    ForeignSpan.objects.filter(pk__in=lost).delete()
    there = Device.objects.filter(pk__in={id for id, _, _ in wanted}, node__in=nodes)
    known = {str(pk) for pk in there.values_list("pk", flat=True)}
    new = [
        ForeignSpan(device_id=id, span=NumericRange(start, end))
        for id, start, end in sorted(wanted)
        if id in known
    ]
    ForeignSpan.objects.bulk_create(new, batch_size=2000)
    return bool(new or lost)
