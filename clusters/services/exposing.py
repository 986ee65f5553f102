"""Carrying a probe of exposure on, where the private keys are: a step each time, none of which
waits for the pod."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper

from clusters import registry
from clusters.credential import BadCredential
from clusters.exposure import ExposureReport
from clusters.models import Exposure, ExposureVerdict
from clusters.port import ClusterError, ClusterPort, NodeReport
from clusters.services import exposures
from controlplane.audit import services as audit

logger = logging.getLogger(__name__)

_LATE = "The pod that looks did not come to its end within 10 minutes"


def carry_on(
    *,
    cluster_id: UUID,
    image: str,
    at: Callable[[], datetime],
    connect_timeout_s: float,
    read_timeout_s: float,
) -> None:
    """Nothing to do where none is under way. What fails is tried again with the next step, until
    its time is over; then the pod is taken away, if the cluster lets that."""
    late = ExpressionWrapper(exposures.overdue(), output_field=BooleanField())
    rows = exposures.under_way().annotate(late=late).select_related("cluster")
    row = rows.filter(cluster_id=cluster_id).first()
    if row is None:
        return
    try:
        port = registry.connect(
            row.cluster.name, connect_timeout_s=connect_timeout_s, read_timeout_s=read_timeout_s
        )
    except BadCredential as error:
        exposures.without_answer(row, why=str(error), at=at())
        return
    try:
        _step(row, port, image=image, late=row.late, at=at)
    except ClusterError as error:
        logger.warning("exposure of %s is not probed: %s", row.cluster.name, error)
        if row.late:
            exposures.without_answer(row, why=str(error), at=at())
        else:
            exposures.of_this_try(row).update(why=str(error)[:500])
    finally:
        port.close()


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
    elif found.ended or late:
        port.end_exposure_probe(uid=found.uid)
        _end(row, found, at=at())


def _start(row: Exposure, port: ClusterPort, *, image: str, at: Callable[[], datetime]) -> None:
    node, why = chosen(port.list_nodes().items, row=row)
    if node is None:
        exposures.without_answer(row, why=why, at=at())
        return
    uid = port.start_exposure_probe(
        hostname=node.hostname, tolerates=node.gpu_resource, image=image
    )
    exposures.of_this_try(row).update(pod_uid=uid, tried_node=node.name)


def chosen(nodes: Sequence[NodeReport], *, row: Exposure) -> tuple[NodeReport | None, str]:
    """Where to look, or None and why nowhere. Where devices were seen it is that node, while it is
    there; else the nodes with devices take turns, by name."""
    equipped = sorted((node for node in nodes if node.devices), key=lambda node: node.name)
    ready = [node for node in equipped if node.ready and node.schedulable]
    if row.is_unsafe and row.node in {node.name for node in equipped}:
        same = next((node for node in ready if node.name == row.node), None)
        return same, f"The node {row.node}, where a pod saw devices, takes no pods now."
    behind = [node for node in ready if node.name > row.tried_node]
    return next(iter(behind or ready), None), "No node with devices takes pods now."


def _end(row: Exposure, found: ExposureReport, *, at: datetime) -> None:
    if found.saw is None:
        why = found.why if found.ended else f"{_LATE}: {found.why or 'it said nothing'}"
        exposures.without_answer(row, why=why, at=at)
        return
    verdict = ExposureVerdict.UNSAFE if found.saw else ExposureVerdict.SAFE
    with transaction.atomic():
        before = exposures.of_this_try(row).select_for_update().first()
        if before is None:
            return
        exposures.of_this_try(row).update(
            verdict=verdict,
            saw=list(found.saw),
            seen_at=at,
            node=before.tried_node,
            why="",
            ended_at=at,
            asked_at=None,
            pod_uid="",
        )
        if ExposureVerdict.UNSAFE in {before.verdict, verdict} and before.verdict != verdict:
            after = {"verdict": verdict, "node": before.tried_node, "saw": list(found.saw)}
            entry = audit.Entry(
                "cluster.exposure",
                "cluster",
                before.cluster_id,
                before={"verdict": before.verdict, "node": before.node, "saw": before.saw},
                after=after,
            )
            audit.record(actor="system:exposure", actor_name="Berth", entries=[entry], at=at)
    if found.saw:
        logger.error(
            "cluster %s is unsafe: a pod without devices saw %s on %s",
            row.cluster.name,
            "; ".join(found.saw),
            before.tried_node,
        )
