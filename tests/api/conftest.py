"""What every API test may ask: did a refusal leave anything behind?"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from clusters.models import Cluster, Flavor
from controlplane.api.models import IdempotencyKey
from controlplane.audit.models import AuditEvent
from scheduler.models import PodSet, Workload, WorkloadEvent
from tenants.models import Member, Project, Quota, QuotaRequest, Rate, Token

_STORED = (
    AuditEvent, Cluster, Flavor, IdempotencyKey, Member, PodSet, Project, Quota, QuotaRequest,
    Rate, Token, Workload, WorkloadEvent,
)  # fmt: skip


@pytest.fixture
def nothing_stored(db: None) -> Callable[[], AbstractContextManager[None]]:
    """A context in which no row may appear, vanish or change its version."""

    def state() -> list[object]:
        counts: list[object] = [model._default_manager.count() for model in _STORED]
        return [*counts, *Quota.objects.order_by("id").values_list("id", "version")]

    @contextmanager
    def unchanged() -> Iterator[None]:
        before = state()
        yield
        assert state() == before

    return unchanged
