"""Landings → rows: what a plan says of who starts where next, until it has."""

from collections.abc import Sequence
from datetime import UTC, datetime

import orjson

from scheduler import models
from scheduler.core.plan import Landing


def write(*, before: Sequence[Landing], after: Sequence[Landing]) -> None:
    """Keep the rows of `after`, of which those of `before` are there. In the caller's
    transaction."""
    stay = [landing.workload for landing in after if landing in before]
    models.Landing.objects.exclude(workload_id__in=stay).delete()
    models.Landing.objects.bulk_create(
        models.Landing(
            workload_id=landing.workload,
            cluster_id=landing.cluster,
            places=orjson.loads(orjson.dumps(landing.places)),
            since=datetime.fromtimestamp(landing.since, UTC),
        )
        for landing in after
        if landing not in before
    )
