"""How a node is cut anew: what is patched, and the config map that its MIG manager reads.

NVIDIA's MIG manager watches the label `nvidia.com/mig.config` of its node. When that is another
it looks the name up in the config map of its cluster (mig-parted's format, one YAML text), cuts
the node so, and says how far it is in `nvidia.com/mig.config.state`. It does nothing when the same
name is said again, so each recut has a name of its own.

What must not live here: when any of it may be done (`scheduler.loop.recutting.recuts`).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import yaml

from clusters.adapters.kubernetes.checks import Json
from clusters.adapters.kubernetes.client import MERGE_PATCH, Client
from clusters.adapters.kubernetes.names import MIG_CONFIG, MIG_STATE, Names
from clusters.port import ClusterError, Fault, MigConfigs

KEY = "config.yaml"
"""Of the text in the config map: the GPU operator mounts it under that name."""


def cordoning(*, recut: str, names: Names) -> Json:
    return {
        "metadata": {"annotations": {names.annotation_recut: recut}},
        "spec": {"unschedulable": True},
    }


def uncordoning(*, names: Names) -> Json:
    return {
        "metadata": {"annotations": {names.annotation_recut: None}},
        "spec": {"unschedulable": None},
    }


def cutting(*, config: str) -> Json:
    """The state goes in the same patch: what is said after it is of this cut."""
    return {"metadata": {"labels": {MIG_CONFIG: config, MIG_STATE: None}}}


def write_config(
    client: Client,
    *,
    config: str,
    cuts: Sequence[Mapping[str, int]],
    keep: Collection[str],
    names: Names,
) -> MigConfigs:
    """As the port has it. A text that is as it should be is not written again."""
    found = _read(client, names)
    document = _parsed(found, names)
    known = document["mig-configs"]
    wanted = {
        name: entry
        for name, entry in known.items()
        if name in keep or not _is_ours(str(name), names)
    }
    wanted[config] = _entry(cuts)
    if wanted != known:
        body = {
            "metadata": {"resourceVersion": found["metadata"].get("resourceVersion")},
            "data": {KEY: yaml.safe_dump(document | {"mig-configs": wanted}, sort_keys=False)},
        }
        client.call("PATCH", path(names), body=body, content_type=MERGE_PATCH)
    return MigConfigs(frozenset(map(str, wanted)), wrote=wanted[config] != known.get(config))


def path(names: Names) -> str:
    namespace, _, name = names.mig_config.partition("/")
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps/{quote(name, safe='')}"


def _entry(cuts: Sequence[Mapping[str, int]]) -> list[Json]:
    """Devices that are cut alike together, in the order of the first of each kind."""
    alike: dict[tuple[tuple[str, int], ...], list[int]] = {}
    for ordinal, cut in enumerate(cuts):
        alike.setdefault(tuple(sorted(cut.items())), []).append(ordinal)
    return [
        {
            "devices": devices,
            "mig-enabled": bool(cut),
            **({"mig-devices": dict(cut)} if cut else {}),
        }
        for cut, devices in alike.items()
    ]


def _is_ours(config: str, names: Names) -> bool:
    ours = re.escape(f"berth-{names.installation}-")
    return re.fullmatch(ours + r"[0-9a-f]{12}(?:-old)?", config) is not None


def _read(client: Client, names: Names) -> Json:
    try:
        return client.call("GET", path(names))
    except ClusterError as error:
        if error.fault is not Fault.NOT_FOUND:
            raise
        raise ClusterError(
            Fault.NOT_FOUND,
            f"There is no config map {names.mig_config}: make it as the README says, and have the"
            " GPU operator's migManager.config.name say its name.",
        ) from None


def _parsed(found: Json, names: Names) -> dict[str, Any]:  # Any: somebody's YAML
    text = (found.get("data") or {}).get(KEY, "version: v1\nmig-configs: {}\n")
    try:
        document = yaml.safe_load(text) if isinstance(text, str) else None
    except yaml.YAMLError:
        document = None
    if not (isinstance(document, dict) and isinstance(document.get("mig-configs"), dict)):
        raise ClusterError(
            Fault.MALFORMED,
            f"{KEY} of the config map {names.mig_config} has no mig-configs: it has to be as"
            " mig-parted reads it.",
        )
    return document
