"""Making tenants' projects."""

import re
from datetime import datetime

from django.db import IntegrityError, transaction

from controlplane.audit.services import Entry
from controlplane.kernel import text
from controlplane.kernel.errors import Conflict, Invalid
from tenants import access
from tenants.access import Actor
from tenants.models import Project, Tenant
from tenants.services import trail, weights

_NAMESPACE_MAX = 63
_SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


def create(
    *, actor: Actor, tenant: Tenant, name: str, slug: str, at: datetime, weight: int = 1
) -> Project:
    """A project of `tenant`, for those who manage its members. Its namespace is server-made.

    Raises NotFound when the actor does not see the tenant, NotAllowed when only not this,
    Invalid for a name or slug that is none, Conflict when the tenant has that slug already.
    """
    access.authorize_tenant(actor, access.Action.MANAGE_MEMBERS, tenant=tenant)
    name = name.strip()
    fault = text.fault(name)
    if fault or not 1 <= len(name) <= 100:
        message = fault or "A name has 1 to 100 characters."
        raise Invalid(message, pointer="/name", code="bad-character" if fault else "invalid")
    if not _SLUG.fullmatch(slug):
        raise Invalid("1 to 40 of a-z, 0-9 and - are wanted.", pointer="/slug")
    weights.check(weight)
    try:
        with transaction.atomic():
            project = Project.objects.create(
                tenant=tenant,
                name=name,
                slug=slug,
                namespace=_free_namespace(tenant, slug),
                weight=weight,
                created_at=at,
            )
            trail.record(
                Entry(
                    action="project.create",
                    target_type="project",
                    target_id=project.id,
                    tenant_id=tenant.id,
                    project_id=project.id,
                    after={"name": name, "slug": slug, "namespace": project.namespace},
                ),
                actor=actor,
                at=at,
            )
    except IntegrityError as error:
        raise Conflict(f"{tenant.name} has a project {slug} already.", pointer="/slug") from error
    return project


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
