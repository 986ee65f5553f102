"""Making, naming and moving tenants' projects."""

from contextlib import AbstractContextManager
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from controlplane.audit.services import Entry
from tenants import access, naming
from tenants.access import Action, Actor
from tenants.models import Project, Tenant
from tenants.services import columns, places, trail, weights

_NAMESPACE_MAX = 63


def create(
    *, actor: Actor, tenant: Tenant, name: str, slug: str, at: datetime, weight: int = 1
) -> Project:
    """A project of `tenant`, for those who manage its members. Its namespace is server-made.

    Raises NotFound when the actor does not see the tenant, NotAllowed when only not this,
    Invalid for a name or slug that is none or reads like a neighbour's, Conflict when the tenant
    has that slug already.
    """
    access.authorize_tenant(actor, Action.MANAGE_MEMBERS, tenant=tenant)
    places.check_slug(slug)
    weights.check(weight)
    with _slug_is_free(tenant, slug, pointer="/slug"), transaction.atomic():
        places.lock_tree()
        project = Project.objects.create(
            tenant=tenant,
            name=naming.checked(name, alike=_names(tenant)),
            slug=slug,
            namespace=_free_namespace(tenant, slug),
            weight=weight,
            created_at=at,
            quota_confirmed_at=at,
        )
        trail.record(
            Entry(
                action="project.create",
                target_type="project",
                target_id=project.id,
                tenant_id=tenant.id,
                project_id=project.id,
                after={"name": project.name, "slug": slug, "namespace": project.namespace},
            ),
            actor=actor,
            at=at,
        )
    return project


def rename(*, actor: Actor, project: Project, name: str, at: datetime) -> Project:
    """Its slug and namespace stay. Raises NotFound or NotAllowed for it, Invalid for the name."""
    access.authorize(actor, Action.MANAGE_MEMBERS, project=project)
    with transaction.atomic():
        places.lock_tree()
        values = {
            "name": naming.checked(
                name,
                alike=_names(project.tenant).exclude(id=project.id),
            )
        }
        return columns.say(project, action="project.rename", values=values, actor=actor, at=at)


def move(*, actor: Actor, project: Project, tenant: Tenant, at: datetime) -> Project:
    """To another tenant, with its quotas and all that it ever used: for who owns both.

    Raises NotFound or NotAllowed for either, Invalid for a name that reads like that of one there,
    Conflict where its slug is taken, and while any of its work waits or runs.
    """
    access.authorize_tenant(actor, Action.MANAGE_MEMBERS, tenant=project.tenant)
    access.authorize_tenant(actor, Action.MANAGE_MEMBERS, tenant=tenant)
    with (
        _slug_is_free(tenant, project.slug, pointer="/tenant"),
        transaction.atomic(),
        places.refused_while_busy(project.name),
    ):
        places.lock_tree()
        naming.checked(
            project.name,
            alike=_names(tenant).exclude(id=project.id),
            pointer="/tenant",
        )
        was = Project.objects.get(id=project.id)
        places.record_left(was, of=was.tenant_id, to=tenant.id, actor=actor, at=at)
        values = {"tenant_id": tenant.id}
        return columns.say(project, action="project.move", values=values, actor=actor, at=at)


def _slug_is_free(tenant: Tenant, slug: str, *, pointer: str) -> AbstractContextManager[None]:
    return places.taken(
        "project_slug_once_a_tenant",
        message=f"{tenant.name} has a project {slug} already.",
        pointer=pointer,
    )


def _free_namespace(tenant: Tenant, slug: str) -> str:
    """`berth-<tenant>-<project>`, cut to 63; where that is taken, or ends in `-system` as Berth's
    own do, with a number at its end.

    Two tenants may meet there ("a-b" + "c" and "a" + "b-c"), so the name proves nothing: the
    projects' ids do.
    """
    whole = f"berth-{tenant.slug}-{slug}".replace("_", "-").lower()
    base = whole[:_NAMESPACE_MAX].rstrip("-")
    taken = set(
        Project.objects.filter(namespace__startswith=base[:50]).values_list("namespace", flat=True)
    )
    name, number = base, 2
    while name in taken or name.endswith("-system"):
        end = f"-{number}"
        name = base[: _NAMESPACE_MAX - len(end)].rstrip("-") + end
        number += 1
    return name


def _names(tenant: Tenant) -> QuerySet[Project, str]:
    """Of all that hang there."""
    return Project.objects.filter(tenant=tenant).values_list("name", flat=True)
