"""Clusters themselves: registering, hearing from, falling silent."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import IntegrityError, connection, transaction

from clusters import credential
from clusters.credential import BadCredential
from clusters.models import Cluster, ClusterState
from clusters.port import ClusterError, ClusterVersion, Fault
from clusters.services import restoring
from controlplane.audit import services as audit
from controlplane.kernel import text
from controlplane.kernel.errors import Conflict, Invalid

DEGRADED_S = 60
LOST_S = 600
TRIED_S = 180
"""Failures to follow a cluster that are further apart than this are no unbroken row: nobody may
have tried between them. One that finds no connection takes half a minute at most, one that hangs
in a read a minute, and the pause after it another half. Only the end of a try is noted: one that
takes longer, list by list, begins the row anew: work is given up later then, never sooner."""
SILENCE = frozenset({Fault.UNREACHABLE, Fault.SERVER})
"""Of what may come back: no answer of the cluster's. A gateway before an API server that is gone
answers 502 to 504 in its place."""
MAX_REGION = 60
SHOWN, MAX_TOLD = 10, 300
"""Of what makes no sense, how many are kept with what is wrong, and how much of that."""
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


def register(
    *, name: str, region: str, actor: str, actor_name: str, at: datetime, server: str = ""
) -> Cluster:
    """A cluster to be watched from now on; its credential is stored by `credentials`.

    `server` is where its API is, where that is known already. Raises Invalid for a name, region
    or server that is none, Conflict when the name is taken.
    """
    if not NAME.fullmatch(name):
        raise Invalid("1 to 40 of a-z, 0-9 and - are wanted.", pointer="/name")
    fault = text.fault(region)
    if fault or len(region) > MAX_REGION:
        message = fault or f"A region has at most {MAX_REGION} characters."
        code = "bad-character" if fault else "invalid"
        raise Invalid(message, pointer="/region", code=code)
    try:
        server = credential.server(server) if server else ""
    except BadCredential as error:
        raise Invalid(f"{error}.", pointer="/server") from None
    try:
        with transaction.atomic():
            cluster = Cluster.objects.create(
                name=name, region=region, server=server, created_at=at
            )
            after = {"name": name, "region": region, "server": server}
            _record(cluster, "cluster.register", {}, after, by=(actor, actor_name), at=at)
    except IntegrityError as error:
        raise Conflict(f"There is a cluster {name!r} already.", pointer="/name") from error
    return cluster


def repair_drift(
    *, cluster: Cluster, repair: bool, actor: str, actor_name: str, at: datetime
) -> None:
    """Have what somebody changed of a confinement there put right from now on, or only told."""
    with transaction.atomic():
        row = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        if row.repair_drift == repair:
            return
        Cluster.objects.filter(pk=row.pk).update(repair_drift=repair)
        before, after = {"repair_drift": not repair}, {"repair_drift": repair}
        _record(row, "cluster.repair-drift", before, after, by=(actor, actor_name), at=at)


def ask_for_nodes(
    *, cluster: Cluster, ask: bool, actor: str, actor_name: str, at: datetime
) -> None:
    """Have its autoscaler asked from now on for nodes that work waits for, or no more."""
    with transaction.atomic():
        row = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        if row.asks_for_nodes == ask:
            return
        Cluster.objects.filter(pk=row.pk).update(asks_for_nodes=ask)
        before, after = {"asks_for_nodes": not ask}, {"asks_for_nodes": ask}
        _record(row, "cluster.ask-for-nodes", before, after, by=(actor, actor_name), at=at)


def _record(
    cluster: Cluster,
    action: str,
    before: Mapping[str, str | bool],
    after: Mapping[str, str | bool],
    *,
    by: tuple[str, str],
    at: datetime,
) -> None:
    entry = audit.Entry(action, "cluster", cluster.id, before=before, after=after)
    audit.record(actor=by[0], actor_name=by[1], entries=[entry], at=at)


_HEARD = f"""
UPDATE clusters_cluster SET seen_at = clock_timestamp(), last_error = '', failing_since = NULL,
       failed_at = NULL, state = 'active', restored_at = NULL, heard_in = here
FROM {restoring.HERE} AS now (here)
WHERE id = %(cluster)s AND (%(here)s::text IS NULL OR here = %(here)s
      AND (restored_at IS NULL OR restored_at = %(restored_at)s))
"""  # noqa: S608  # a constant


def heard(*, cluster: Cluster, listing: restoring.Listing | None = None) -> bool:
    """Its nodes and pods are known as of now: not silent. False, and nothing is stored, where they
    were stored in another database than this one, or before it counted as put back."""
    here, restored_at = listing or (None, None)
    with connection.cursor() as cursor:
        cursor.execute(_HEARD, {"cluster": cluster.id, "here": here, "restored_at": restored_at})
        return bool(cursor.rowcount)


def answered(*, cluster: Cluster, version: ClusterVersion) -> None:
    """Its API says what it is, which tells nothing of its nodes and pods: see `heard`."""
    Cluster.objects.filter(id=cluster.id).update(
        version=version.version, simulated=version.simulated
    )


def failed(*, cluster: Cluster, error: Exception) -> None:
    """A list, a watch or its version failed. Its state follows from how long that lasts.

    Only SILENCE goes on with the row of failures, or begins it: of a fault of Berth's own, or a
    cluster that answers and refuses, nobody may conclude that what runs there is lost. A failure
    long after the one before begins a new row too: nobody tried meanwhile, so that nobody knows
    how it was.
    """
    silent = isinstance(error, ClusterError) and error.fault in SILENCE
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE clusters_cluster SET last_error = %(why)s,"
            " failed_at = CASE WHEN %(silent)s THEN clock_timestamp() END,"
            " failing_since = CASE WHEN NOT %(silent)s THEN NULL"
            " WHEN failed_at > clock_timestamp() - %(tried_s)s * interval '1 second'"
            " THEN failing_since ELSE clock_timestamp() END WHERE id = %(cluster)s",
            {
                "why": str(error)[:500],
                "silent": silent,
                "tried_s": TRIED_S,
                "cluster": cluster.id,
            },
        )


def left_out(*, cluster: Cluster, kind: str, told: Sequence[str]) -> None:
    """What of its list of `kind`, a key of `Cluster.left_out`, made no sense or is not used."""
    found = {"count": len(told), "first": [each[:MAX_TOLD] for each in told[:SHOWN]]}
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE clusters_cluster SET left_out = left_out || %s::jsonb"
            " WHERE id = %s AND NOT left_out @> %s::jsonb",
            [json.dumps({kind: found}), cluster.id, json.dumps({kind: found})],
        )


def use_failed(*, cluster: Cluster, why: str) -> None:
    """Nobody said how much its devices are used."""
    Cluster.objects.filter(id=cluster.id).update(use_error=why[:500])


def use_not_asked(*, cluster: Cluster) -> None:
    """Nobody is to say it, so nothing is wrong with that."""
    Cluster.objects.filter(id=cluster.id).update(use_error="")


def mark_silent() -> None:
    """ACTIVE → DEGRADED after a minute, → LOST after ten, by the database's clock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE clusters_cluster SET state = CASE"
            " WHEN seen_at < clock_timestamp() - %s * interval '1 second' THEN %s ELSE %s END"
            " WHERE state = ANY(%s) AND seen_at < clock_timestamp() - %s * interval '1 second'",
            [
                LOST_S,
                ClusterState.LOST.value,
                ClusterState.DEGRADED.value,
                [ClusterState.ACTIVE.value, ClusterState.DEGRADED.value],
                DEGRADED_S,
            ],
        )
