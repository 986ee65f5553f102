"""Carrying a probe of exposure on, where the private keys are: a step each time, none of which
waits for the pod. It goes from node to node."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import BooleanField, DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from clusters import registry
from clusters.credential import BadCredential
from clusters.exposure import ExposureReport
from clusters.models import Exposure, ExposureVerdict
from clusters.models.exposure import SAFE_FOR
from clusters.port import ClusterError, ClusterPort, Listing, NodeReport
from clusters.services import exposures
from controlplane.audit import services as audit

logger = logging.getLogger(__name__)

MOST_QUIET_S = 120
_LATE = "The pod that looks did not come to its end within 10 minutes"

type Answers = Mapping[str, Mapping[str, Any]]  # Any: JSON values


def carry_on(
    *,
    cluster_id: UUID,
    image: str,
    at: Callable[[], datetime],
    connect_timeout_s: float,
    read_timeout_s: float,
) -> int:
    """For how many seconds it is best left alone: as long again as it is at one node, where a step
    failed. What fails is tried again, until its time is over; a pod that could not be taken away
    by then is met again by those that come after."""
    late = ExpressionWrapper(exposures.overdue(), output_field=BooleanField())
    waited = ExpressionWrapper(Now() - F("timed_from"), output_field=DurationField())
    rows = (exposures.under_way() | exposures.left_behind()).annotate(late=late, waited=waited)
    row = rows.select_related("cluster").filter(cluster_id=cluster_id).first()
    if row is None:
        return 0
    try:
        port = registry.connect(
            row.cluster.name, connect_timeout_s=connect_timeout_s, read_timeout_s=read_timeout_s
        )
    except BadCredential as error:
        if row.asked_at is not None:
            exposures.without_answer(row, why=str(error), at=at())
        return MOST_QUIET_S
    try:
        if row.asked_at is None:
            _take_away(row, port)
        else:
            _step(row, port, image=image, late=row.late, at=at)
    except ClusterError as error:
        logger.warning("exposure of %s is not probed: %s", row.cluster.name, error)
        if row.asked_at is not None and row.late:
            exposures.without_answer(row, why=str(error), at=at())
            return 0
        if row.asked_at is not None:
            exposures.of_this_try(row).update(why=str(error)[:500])
        return int(min(row.waited.total_seconds(), MOST_QUIET_S))
    finally:
        port.close()
    return 0


def _step(
    row: Exposure, port: ClusterPort, *, image: str, late: bool, at: Callable[[], datetime]
) -> None:
    found = port.read_exposure_probe()
    if found is not None and found.uid != row.pod_uid:
        port.end_exposure_probe(uid=found.uid)  # of a try before this one; begun once it is gone
    elif found is None and late:
        exposures.without_answer(row, why=row.why or f"{_LATE}.", at=at())
    elif found is None:
        _start(row, port, image=image, at=at)
    else:
        if is_noted(row, row.tried_node):
            pass  # as it could not be taken away
        elif found.ended or late:
            _note(row, found, at=at())  # first: the pod has the only other copy
        else:
            exposures.of_this_try(row).update(why=found.why[:500])
            return
        _take_away(row, port)


def _take_away(row: Exposure, port: ClusterPort) -> None:
    port.end_exposure_probe(uid=row.pod_uid)
    Exposure.objects.filter(id=row.id, pod_uid=row.pod_uid).update(pod_uid="")


def _start(row: Exposure, port: ClusterPort, *, image: str, at: Callable[[], datetime]) -> None:
    listed = port.list_nodes()
    node = chosen(listed.items, row=row)
    if node is None:
        _end(row, listed, at=at())
        return
    uid = port.start_exposure_probe(
        hostname=node.hostname, tolerates=node.gpu_resource, image=image
    )
    exposures.of_this_try(row).update(pod_uid=uid, tried_node=node.name)


def equipped(nodes: Sequence[NodeReport], *, row: Exposure) -> list[NodeReport]:
    """Those that count, those where devices were seen first, then by name. One where they were
    seen counts whatever it says of its devices: it does not say them while its device plugin is
    down."""
    unsafe = set(row.unsafe_nodes)
    there = [node for node in nodes if node.devices or node.name in unsafe]
    return sorted(there, key=lambda node: (node.name not in unsafe, node.name))


def is_noted(row: Exposure, node: str) -> bool:
    """Whether this try has been there."""
    asked_at = row.asked_at.isoformat() if row.asked_at else ""
    return bool(row.answers.get(node, {}).get("asked_at") == asked_at)


def chosen(nodes: Sequence[NodeReport], *, row: Exposure) -> NodeReport | None:
    """Where to look next; None where nothing is left that takes pods."""
    ready = [node for node in equipped(nodes, row=row) if node.ready and node.schedulable]
    return next((node for node in ready if not is_noted(row, node.name)), None)


def _note(row: Exposure, found: ExposureReport, *, at: datetime) -> None:
    """What the pod at hand says of its node. Devices make the cluster unsafe at once."""
    node, saw, why = row.tried_node, found.saw, ""
    if saw is not None and found.node != node:
        saw, why = None, f"it looked on {found.node}"
    elif saw is None:
        why = found.why if found.ended else f"{_LATE}: {found.why or 'it said nothing'}"
        if row.why and row.why not in why:
            why = f"{why}; before that: {row.why}"
    with transaction.atomic():
        before = exposures.of_this_try(row).select_for_update().first()
        if before is None or before.asked_at is None:
            return
        answer = {"saw": saw, "seen_at": at.isoformat()}
        old = before.answers.get(node)
        if saw is None and old is not None and old["saw"]:
            answer = {"saw": old["saw"], "seen_at": old["seen_at"]}
        asked_at = before.asked_at.isoformat()
        answers = before.answers | {node: {**answer, "why": why[:500], "asked_at": asked_at}}
        change: dict[str, Any] = {"answers": answers, "timed_from": Now(), "why": ""}
        if saw and (not before.is_unsafe or before.node == node):
            change |= _unsafe(answers, node)
        _change(before, change, at=at)
    if saw:
        logger.error(
            "cluster %s is unsafe: a pod without devices saw %s on %s",
            row.cluster.name,
            "; ".join(saw),
            node,
        )


def _end(row: Exposure, listed: Listing[NodeReport], *, at: datetime) -> None:
    """Nothing is left to look at. Answers of nodes that are gone are forgotten, unless some node
    makes no sense: it may be one of those."""
    there = equipped(listed.items, row=row)
    if not there:
        exposures.without_answer(row, why="There is no node with devices.", at=at)
        return
    names = {node.name for node in listed.items}
    answers = {
        name: answer for name, answer in row.answers.items() if name in names or listed.left_out
    }
    open_ = [node.name for node in there if not is_noted(row, node.name)]
    mute = [node.name for node in there if answers.get(node.name, {}).get("why")]
    why = ""
    if missed := sorted({*open_, *mute}):
        said = "it takes no pods now" if missed[0] in open_ else answers[missed[0]]["why"]
        looked = len(there) - len(missed)
        why = f"{looked} of {len(there)} nodes with devices were looked at. {missed[0]}: {said}"
    elif listed.left_out:
        why = f"What a node says of itself makes no sense: {listed.left_out[0]}"
    unsafe = sorted(name for name, answer in answers.items() if answer["saw"])
    clean = [seen for node in there if (seen := _clean_at(answers.get(node.name), at=at))]
    change: dict[str, Any] = {"verdict": ExposureVerdict.UNKNOWN, "saw": []}
    if unsafe:
        change = _unsafe(answers, row.node if row.node in unsafe else unsafe[0])
    elif len(clean) == len(there) and not listed.left_out:
        change = {"verdict": ExposureVerdict.SAFE, "saw": [], "seen_at": min(clean), "node": ""}
    with transaction.atomic():
        before = exposures.of_this_try(row).select_for_update().first()
        if before is not None:
            over = {"answers": answers, "why": why[:500], "ended_at": at, "asked_at": None}
            _change(before, change | over, at=at)


def _clean_at(answer: Mapping[str, Any] | None, *, at: datetime) -> datetime | None:
    """When a pod saw nothing there, if that still holds."""
    if answer is None or answer["saw"] != []:
        return None
    seen_at = datetime.fromisoformat(answer["seen_at"])
    return seen_at if seen_at > at - SAFE_FOR else None


def _unsafe(answers: Answers, node: str) -> dict[str, Any]:
    told = answers[node]
    seen_at = datetime.fromisoformat(told["seen_at"])
    verdict = ExposureVerdict.UNSAFE
    return {"verdict": verdict, "saw": told["saw"], "seen_at": seen_at, "node": node}


def _change(row: Exposure, change: Mapping[str, Any], *, at: datetime) -> None:
    """Store it, and tell the audit of a cluster that becomes unsafe, or is it no more."""
    verdict, before = row.verdict, _told(row)
    for name, value in change.items():
        setattr(row, name, value)
    row.save(update_fields=list(change))
    if ExposureVerdict.UNSAFE in {verdict, row.verdict} and verdict != row.verdict:
        entry = audit.Entry(
            "cluster.exposure", "cluster", row.cluster_id, before=before, after=_told(row)
        )
        audit.record(actor="system:exposure", actor_name="Berth", entries=[entry], at=at)


def _told(row: Exposure) -> dict[str, Any]:  # Any: JSON
    return {"verdict": row.verdict, "node": row.node, "saw": row.saw}
