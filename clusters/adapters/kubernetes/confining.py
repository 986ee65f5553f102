"""Applying a confinement to a cluster: what is there is read first, so that drift can be told."""

from clusters.adapters.kubernetes import confinement
from clusters.adapters.kubernetes.checks import Malformed
from clusters.adapters.kubernetes.client import APPLY_PATCH, Client, Json
from clusters.adapters.kubernetes.names import Names
from clusters.port import ClusterError, Confinement, Drift, Fault


def confine(
    client: Client, *, wanted: Confinement, names: Names, repair: bool
) -> tuple[Drift, ...]:
    """As `ClusterPort.confine`. By server-side apply, so that what others own stays theirs; one
    that only reports is a dry run of the same."""
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
        if repair or before is not None:
            after = _apply(client, body, names=names, dry_run=not repair)
            drifts += _told(body, before, after) if before is not None else ()
    return tuple(drifts)


def _told(body: Json, found: Json, applied: Json) -> tuple[Drift, ...]:
    try:
        return tuple(confinement.drifts(body, found, applied))
    except Malformed as error:
        message = f"The cluster's {confinement.title(body)} makes no sense: {error}"
        raise ClusterError(Fault.MALFORMED, message) from None


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
    metadata = found.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    mine = isinstance(labels, dict) and labels.get(names.label_installation)
    if mine == names.installation:
        return
    where = body["metadata"].get("namespace")
    raise ClusterError(
        Fault.CONFLICT,
        f"The {confinement.title(body)}{f' in the namespace {where}' if where else ''} is not this"
        f" installation's: it lacks the label {names.label_installation}={names.installation}."
        " Label it so, or take it away.",
    )
