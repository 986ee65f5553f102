"""The audit, as far as an actor may read it: who did what to what, newest first."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from controlplane.audit.models import AuditEvent
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project, Role, Tenant

PAGE = 50
MOST_EXPORTED = 10_000
"""Events in one file; the next begins where it ends."""

type Json = Any  # a JSON value


@dataclass(frozen=True, slots=True)
class Asked:
    """Which events are wanted; None, "" and () ask for any. `who` is a name or a label, `people`
    leaves out what Berth did by itself, `tenant` is one with all below it, `until` the first
    moment that is not wanted any more."""

    project: UUID | None = None
    tenant: UUID | None = None
    who: str = ""
    people: bool = False
    actions: tuple[str, ...] = ()
    target: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A field of what was done, `before` None where it had not been there, or is not told."""

    field: str
    before: Json
    after: Json

    @property
    def before_text(self) -> str:
        return _text(self.before)

    @property
    def after_text(self) -> str:
        return _text(self.after)


_BY = {"token": "by a token", "provider": "as somebody signed in"}


@dataclass(frozen=True, slots=True)
class Line:
    """An event in a list. `tenant` and `project` are names, "" for what is of none."""

    event: AuditEvent
    tenant: str
    project: str
    changes: tuple[Change, ...]

    @property
    def by(self) -> str:
        """How it was done: by whom at the portal, by a token, by what a sign-in provider told, by
        a part of Berth."""
        kind, _, part = self.event.actor.partition(":")
        return f"Berth, {part}" if kind == "system" else _BY.get(kind, "")


@dataclass(frozen=True, slots=True)
class Page:
    """`older` is the id after which the next page begins, None on the last."""

    lines: tuple[Line, ...]
    older: UUID | None


def events(*, actor: Actor, asked: Asked) -> QuerySet[AuditEvent]:
    """Those that the actor may read; order them by -id, which is by when they were written.

    A project's own are read by who may VIEW_AUDIT there, a tenant's by who may at it or above it,
    those of no tenant by who may everywhere. Raises NotFound for a project or tenant that the
    actor does not see, NotAllowed for one whose audit is not theirs to read.
    """
    rows = AuditEvent.objects.filter(_readable(actor))
    if asked.project is not None:
        project = access.project_or_404(actor, asked.project)
        access.authorize(actor, Action.VIEW_AUDIT, project=project)
        rows = rows.filter(project_id=project.id)
    if asked.tenant is not None:
        tenant = access.tenant_or_404(actor, asked.tenant)
        access.authorize_tenant(actor, Action.VIEW_AUDIT, tenant=tenant)
        rows = rows.filter(tenant_id__in=actor.tenants_below(tenant.id))
    if asked.who:
        rows = rows.filter(Q(actor=asked.who) | Q(actor_name=asked.who))
    if asked.people:
        rows = rows.exclude(actor__startswith="system:")
    if asked.actions:
        rows = rows.filter(action__in=asked.actions)
    if asked.target is not None:
        rows = rows.filter(target_id=asked.target)
    if asked.since is not None:
        rows = rows.filter(at__gte=asked.since)
    if asked.until is not None:
        rows = rows.filter(at__lt=asked.until)
    return rows


def page(*, actor: Actor, asked: Asked, before: UUID | None = None) -> Page:
    """PAGE of them, the newest first, from the one after `before`. Raises as `events`."""
    rows = events(actor=actor, asked=asked)
    if before is not None:
        rows = rows.filter(id__lt=before)
    found = list(rows.order_by("-id")[: PAGE + 1])
    return Page(lines(found[:PAGE]), found[PAGE - 1].id if len(found) > PAGE else None)


def lines(rows: Sequence[AuditEvent]) -> tuple[Line, ...]:
    """Each with the names of where it was. Two queries."""
    projects: dict[UUID | None, str] = dict(
        Project.objects.filter(id__in={row.project_id for row in rows}).values_list("id", "name")
    )
    tenants: dict[UUID | None, str] = dict(
        Tenant.objects.filter(id__in={row.tenant_id for row in rows}).values_list("id", "name")
    )
    return tuple(
        Line(
            event=row,
            tenant=tenants.get(row.tenant_id, ""),
            project=projects.get(row.project_id, ""),
            changes=_changes(row.before, row.after),
        )
        for row in rows
    )


def may_read(actor: Actor) -> bool:
    """Whether there is any place whose audit the actor may read."""
    return Action.VIEW_AUDIT in actor.ceiling and any(
        Action.VIEW_AUDIT in access.ROLE_ACTIONS[Role(member.role)] for member in actor.memberships
    )


def _readable(actor: Actor) -> Q:
    if not actor.is_bound and Action.VIEW_AUDIT in actor.ceiling:
        if actor.permits_everywhere(Action.VIEW_AUDIT):
            return Q()
        tenants = actor.visible_tenants(Action.VIEW_AUDIT)
    else:
        tenants = frozenset()
    projects = access.for_actor(Project.objects.all(), actor=actor, action=Action.VIEW_AUDIT)
    return Q(project_id__in=projects.values("id")) | Q(
        project_id__isnull=True, tenant_id__in=tenants
    )


def _changes(before: Mapping[str, Json], after: Mapping[str, Json]) -> tuple[Change, ...]:
    """Fields that differ, by name. What is not told, null and an empty text are alike."""
    old, new = (
        {name: value for name, value in side.items() if value not in (None, "")}
        for side in (before, after)
    )
    return tuple(
        Change(name, old.get(name), new.get(name))
        for name in sorted(old.keys() | new.keys())
        if name not in old or name not in new or old[name] != new[name]
    )


def _text(value: Json) -> str:
    """As a reader sees it: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
