"""The ways in which nodes are cut: told to a cluster, and whether a node is cut in one."""

from clusters.models import Node
from clusters.port import ClusterPort, NodeReport
from scheduler.models import Recut
from scheduler.services import recuts
from scheduler.services.recuts import Cuts


def tell(port: ClusterPort, row: Recut, *, config: str, cuts: Cuts) -> frozenset[str]:
    """Make it known there; all that are known then. Those that a node is cut in, or that a live
    recut means, are kept. Raises ClusterError."""
    cluster = row.node.cluster
    live = Recut.objects.filter(node__cluster=cluster, ended_at__isnull=True)
    labels = Node.objects.filter(cluster=cluster, gone_at=None).values_list("labels", flat=True)
    keep = {name for each in live for name in (each.config, each.config_before, config_back(each))}
    keep |= {str(each.get("nvidia.com/mig.config", "")) for each in labels}
    return port.write_mig_config(config=config, cuts=cuts, keep=keep)


def config_back(row: Recut) -> str:
    """Of the way back, where the node was cut in none that has a name."""
    return f"{row.config}-old"


def has(node: NodeReport, cuts: Cuts) -> bool:
    """Whether it shows these slices and whole devices, whichever device has which."""
    whole = sum(1 for device in node.devices if device.mode == "whole")
    slices, wanted = recuts.counted(cuts)
    return (dict(node.mig_counts), whole) == (dict(slices), wanted)


def said(node: NodeReport) -> str:
    """Its slices, for people."""
    counts = [f"{count} x {profile}" for profile, count in sorted(node.mig_counts.items())]
    return ", ".join(counts) or "no slices"


def rows_have(node: Node, report: NodeReport) -> bool:
    """Whether the inventory shows it as it is by now: the watch may be a moment behind."""
    row = Node.objects.get(pk=node.pk)
    if row.schedulable != report.schedulable:
        return False
    return has(report, recuts.cut_now(node=row))
