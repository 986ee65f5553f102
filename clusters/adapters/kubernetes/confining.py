"""Applying a confinement to a cluster: what is there is read first, so that drift can be told."""

from clusters.adapters.kubernetes import confinement, manifests
from clusters.adapters.kubernetes.checks import Json, Malformed
from clusters.adapters.kubernetes.client import APPLY_PATCH, MERGE_PATCH, Client
from clusters.adapters.kubernetes.names import Names
from clusters.confinement import Confinement, Drift, Repair
from clusters.port import ClusterError, Fault


def confine(
    client: Client, *, wanted: Confinement, names: Names, repair: Repair
) -> tuple[Drift, ...]:
    """As `ClusterPort.confine`. By server-side apply, so that what others own stays theirs; what
    is only told is a dry run of the same."""
    space, *inside = confinement.objects(wanted, names=names)
    there = _found(client, space)
    found = [there, *(_found(client, body) if there else None for body in inside)]
    both = list(zip((space, *inside), found, strict=True))
    for body, before in both:
        if before is not None:
            _check_ours(body, before, names=names)
    drifts: list[Drift] = []
    for body, before in both:
        if before is None:
            drifts.append(Drift(confinement.title(body)))
            if repair is not Repair.NOTHING:
                _apply(client, body, names=names, dry_run=False)
        else:
            after = _apply(client, body, names=names, dry_run=repair is not Repair.ALL)
            drifts += _told(client, body, before, after, repair=repair)
    return tuple(drifts)


def owns(client: Client, *, namespace: str, names: Names) -> bool:
    """As `ClusterPort.owns_namespace`."""
    found = _found(client, manifests.namespace(namespace, names=names))
    return found is not None and _is_ours(found, names=names)


def _told(
    client: Client, body: Json, found: Json, applied: Json, *, repair: Repair
) -> tuple[Drift, ...]:
    """Limits that others put into our quota are told too, and taken away."""
    try:
        foreign = confinement.foreign_limits(body, applied)
        for limit in foreign:
            del applied["spec"]["hard"][limit]
        drifts = tuple(confinement.drifts(body, found, applied))
    except Malformed as error:
        message = f"The cluster's {confinement.title(body)} makes no sense: {error}"
        raise ClusterError(Fault.MALFORMED, message) from None
    if foreign and repair is Repair.ALL:
        none = {"spec": {"hard": dict.fromkeys(foreign)}}
        client.call("PATCH", confinement.path(body), body=none, content_type=MERGE_PATCH)
    return drifts


def _found(client: Client, body: Json) -> Json | None:
    try:
        return client.call("GET", confinement.path(body))
    except ClusterError as error:
        if error.fault is Fault.NOT_FOUND:
            return None
        raise


def _apply(client: Client, body: Json, *, names: Names, dry_run: bool) -> Json:
    query = {"fieldManager": names.field_manager, "force": "true"}
    return client.call(
        "PATCH",
        confinement.path(body),
        query=query | {"dryRun": "All"} if dry_run else query,
        body=body,
        content_type=APPLY_PATCH,
    )


def _check_ours(body: Json, found: Json, *, names: Names) -> None:
    """An owner agrees by the label. Raises ClusterError(CONFLICT)."""
    if _is_ours(found, names=names):
        return
    where = body["metadata"].get("namespace")
    raise ClusterError(
        Fault.CONFLICT,
        f"The {confinement.title(body)}{f' in the namespace {where}' if where else ''} is not this"
        f" installation's: it lacks the label {names.label_installation}={names.installation}."
        " Label it so, or take it away.",
    )


def _is_ours(found: Json, *, names: Names) -> bool:
    metadata = found.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    mine = labels.get(names.label_installation) if isinstance(labels, dict) else None
    return bool(mine == names.installation)
