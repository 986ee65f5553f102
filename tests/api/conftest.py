"""What every API test may ask: did a refusal leave anything behind?"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from controlplane.api.models import IdempotencyKey
from controlplane.audit.models import AuditEvent
from scheduler.models import PodSet, Workload, WorkloadEvent
from tenants.models import Member, Project, Quota, QuotaRequest, Token

_STORED = (
    AuditEvent, IdempotencyKey, Member, PodSet, Project, Quota, QuotaRequest, Token, Workload,
    WorkloadEvent,
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
