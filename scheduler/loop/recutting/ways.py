"""The ways in which nodes are cut: told to a cluster, and whether a node is cut in one."""

from dataclasses import dataclass

from clusters.models import Node
from clusters.port import ClusterPort, NodeReport
from scheduler.models import Recut
from scheduler.services import recuts
from scheduler.services.recuts import Cuts


@dataclass(frozen=True, slots=True)
class BothWays:
    """Both ways of a recut were told: `back`, whether there is one back; `wrote`, whether either
    had to be written."""

    back: bool
    wrote: bool


def tell(port: ClusterPort, row: Recut) -> BothWays:
    """Make both known there: the one that is meant, and the one back, unless that has a name of
    somebody else's. Ways that a node is cut in, or that a live recut means, are kept. Raises
    ClusterError."""
    cluster = row.node.cluster
    live = Recut.objects.filter(node__cluster=cluster, ended_at__isnull=True)
    labels = Node.objects.filter(cluster=cluster, gone_at=None).values_list("labels", flat=True)
    keep = {name for each in live for name in (each.config, each.config_before, config_back(each))}
    keep |= {str(each.get("nvidia.com/mig.config", "")) for each in labels}
    wrote = False
    if not row.config_before:
        back = config_back(row)
        wrote = port.write_mig_config(config=back, cuts=row.before, keep=keep).wrote
    there = port.write_mig_config(config=row.config, cuts=row.wanted, keep=keep)
    return BothWays(row.config_before in ("", *there.known), wrote or there.wrote)


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
