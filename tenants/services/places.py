"""What making, naming and moving tenants and projects have in common."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, connection

from controlplane.audit.services import Entry
from controlplane.kernel.errors import Conflict, Invalid
from tenants.access import Actor
from tenants.models import Project, Tenant
from tenants.services import trail

_SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
TREE_STAYS = (
    "(SELECT pg_advisory_xact_lock_shared('tenants_tenant'::regclass::oid::bigint)) IS NOT NULL"
)
"""A condition, always true, that waits for who has `lock_tree`, and keeps others from it until the
transaction ends. What is read after it is as they left it."""
_STAYS = ("project_with_live_work_stays", "tenant_with_live_work_stays")
"""Walls of the scheduler's, which knows what work is live."""


def check_slug(slug: str) -> None:
    """Raises Invalid for what is none."""
    if not _SLUG.fullmatch(slug):
        raise Invalid("1 to 40 of a-z, 0-9 and - are wanted.", pointer="/slug")


def lock_tree() -> None:
    """Until the transaction ends nobody else names or moves a place, so that no two are alike, or
    says what is permitted there; nor is anything stored meanwhile that was checked by that."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock('tenants_tenant'::regclass::oid::bigint)")


@contextmanager
def taken(wall: str, *, message: str, pointer: str) -> Iterator[None]:
    """Conflict, where that wall of the database refuses; what another refuses stays what it is."""
    try:
        yield
    except IntegrityError as error:
        if _wall(error) != wall:
            raise
        raise Conflict(message, pointer=pointer) from error


@contextmanager
def refused_while_busy(name: str) -> Iterator[None]:
    """Conflict, where the database refuses a move for live work, or for one that was made
    meanwhile."""
    try:
        yield
    except IntegrityError as error:
        wall = _wall(error)
        if wall == "tenant_no_cycle":
            raise Conflict(f"Somebody moved what {name} would be below: look again.") from error
        if wall not in _STAYS:
            raise
        raise Conflict(
            f"Work of {name} waits or runs, and counts where it is: cancel it or let it end."
        ) from error


def record_left(
    place: Project | Tenant, *, of: UUID | None, to: UUID | None, actor: Actor, at: datetime
) -> None:
    """For who reads the audit of tenant `of` alone: what is told of the move itself stands where
    the place is from then on. Not where it goes, which they may not see."""
    if of is None or of == to:
        return
    kind = "project" if isinstance(place, Project) else "tenant"
    entry = Entry(
        action=f"{kind}.leave",
        target_type=kind,
        target_id=place.id,
        tenant_id=of,
        before={"name": place.name, "slug": place.slug},
    )
    trail.record(entry, actor=actor, at=at)


def _wall(error: IntegrityError) -> str:
    diagnosis = getattr(error.__cause__, "diag", None)
    return getattr(diagnosis, "constraint_name", None) or ""
