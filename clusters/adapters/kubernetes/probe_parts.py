"""The steps of a probe about parts: what Berth does in a cluster only where that is granted.

Where nothing of a part's rights is granted, nobody meant Berth to have it, and all is well. Where
some of them are, somebody did, and the rest is missing: by a manifest of an older version, or by
one that was changed since.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from clusters.adapters.kubernetes import karpenter, node_requests, recuts
from clusters.adapters.kubernetes.client import Client
from clusters.adapters.kubernetes.device_claims import DEVICE_CLASSES, RESOURCE_SLICES
from clusters.adapters.kubernetes.names import Names
from clusters.adapters.kubernetes.reviews import lacking
from clusters.adapters.kubernetes.rights import (
    CLAIM_RIGHTS,
    CLASS_RIGHTS,
    OF_PARTS,
    REQUEST_RIGHTS,
    Right,
)
from clusters.parts import Part
from clusters.port import ClusterError, Fault, ProbeStep, Verdict


class _Step(NamedTuple):
    """`without` is said where nothing is granted, `so` where some right is missing, and
    `so_besides` where all that are missing are among `besides`; `looked` says how it is where none
    is."""

    name: str
    without: str
    so: str
    looked: Callable[[Client, Names], tuple[Verdict, str]]
    besides: tuple[Right, ...] = ()
    so_besides: str = ""


def steps(client: Client, *, names: Names) -> Iterator[tuple[str, Callable[[str], ProbeStep]]]:
    """Of each part one: its name, and what makes it of that. These raise ClusterError, and
    Malformed for an answer that makes no sense."""
    for part, step in _STEPS.items():
        yield step.name, partial(_told, client=client, names=names, part=part)


def _told(name: str, *, client: Client, names: Names, part: Part) -> ProbeStep:
    step, rights, printed = _STEPS[part], OF_PARTS[part], f"`manage.py cluster_manifest --{part}`"
    lacks = [right for right in rights if lacking(client, [right], **_within(right, names=names))]
    if len(lacks) == len(rights):
        return ProbeStep(name, Verdict.WORKS, f"{step.without} ({printed} prints what lets it)")
    if lacks:
        so = step.so_besides if set(lacks) <= set(step.besides) else step.so
        said = f"it may not {', '.join(map(str, lacks))}, so {so}: apply what {printed} prints"
        return ProbeStep(name, Verdict.WARNING, said)
    return ProbeStep(name, *step.looked(client, names))


def _within(right: Right, *, names: Names) -> Mapping[str, str]:
    """Where it is granted, if not everywhere."""
    if right.resource == "configmaps":
        namespace, _, config_map = names.mig_config.partition("/")
        return {"namespace": namespace, "name": config_map}
    return {"namespace": names.home} if right in REQUEST_RIGHTS else {}


def _recut(client: Client, names: Names) -> tuple[Verdict, str]:
    if not _serves(client, recuts.path(names)):
        said = f"Berth may cut nodes anew, but there is no config map {names.mig_config}"
        return Verdict.WARNING, said
    return Verdict.WORKS, "Berth may cut nodes anew there"


def _certain_devices(client: Client, names: Names) -> tuple[Verdict, str]:
    if not _serves(client, RESOURCE_SLICES):
        return Verdict.WORKS, "it has no Dynamic Resource Allocation (resource.k8s.io/v1)"
    if not _serves(client, f"{DEVICE_CLASSES}/{names.own}"):
        said = f"there is no device class {names.own} (`manage.py cluster_manifest --dra` has it)"
        return Verdict.WARNING, said
    return Verdict.WORKS, "Berth may claim certain devices there"


def _catch(client: Client, names: Names) -> tuple[Verdict, str]:
    return Verdict.WORKS, "may read who owns what others make"


def _autoscale(client: Client, names: Names) -> tuple[Verdict, str]:
    if not (_serves(client, karpenter.POOLS) or _serves(client, node_requests.EVERYWHERE)):
        said = (
            "Berth may see which nodes can come, but the cluster has neither Karpenter nor"
            " ProvisioningRequests"
        )
        return Verdict.WARNING, said
    return Verdict.WORKS, "Berth sees which nodes can come there"


def _logs(client: Client, names: Names) -> tuple[Verdict, str]:
    return Verdict.WORKS, "Berth may show events and logs of pods there"


def _serves(client: Client, path: str) -> bool:
    """Whether its API has such an object, or such objects, be there any or none."""
    try:
        client.call("GET", path, query={"limit": 1})
    except ClusterError as error:
        if error.fault is not Fault.NOT_FOUND:
            raise
        return False
    return True


_STEPS: Mapping[Part, _Step] = {
    Part.MIG: _Step(
        "recut", "Berth does not cut nodes anew there", "nodes can't be cut anew", _recut
    ),
    Part.DRA: _Step(
        "certain devices",
        "Berth uses no devices by claims there",
        "work can't be given certain devices",
        _certain_devices,
        besides=(*CLASS_RIGHTS, *CLAIM_RIGHTS),
        so_besides="pods of others that ask for devices by a class or a template stay gated",
    ),
    # Who installed only some kinds of owners may have left the others out of the role: of those
    # pods start each by itself.
    Part.CATCH: _Step(
        "catch",
        "Berth does not read there who owns others' work, which is needed only where that is"
        " caught",
        "pods of these are not known to belong together",
        _catch,
    ),
    Part.AUTOSCALE: _Step(
        "autoscale",
        "Berth does not see there which nodes can come, nor asks for any",
        "not all nodes that can come are seen, or none can be asked for",
        _autoscale,
    ),
    Part.LOGS: _Step(
        "logs",
        "Berth shows no events and logs of pods there",
        "not all events and logs of pods are shown",
        _logs,
    ),
}
