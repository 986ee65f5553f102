"""Making, naming and moving tenants: by who owns the place where they hang."""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from controlplane.kernel.errors import Invalid
from tenants import access, naming
from tenants.access import Action, Actor
from tenants.models import Tenant
from tenants.services import columns, places, trail, weights

MOST_LEVELS = 20
"""Of the tree: a fleet's cohorts have a few, and each is walked in every plan."""
_SLUG = "tenants_tenant_slug_key"
"""The wall that no two have one."""


def create(
    *, actor: Actor, parent: Tenant | None, name: str, slug: str, at: datetime, weight: int = 1
) -> Tenant:
    """A department of `parent`, or an organisation, for who owns the fleet.

    Raises NotFound when the actor does not see the parent, NotAllowed when only not this, Invalid
    for a name or slug that is none or reads like a sibling's, and where the tree gets too deep,
    Conflict when the slug is taken.
    """
    _authorize(actor, parent)
    places.check_slug(slug)
    weights.check(weight)
    _check_levels(actor, parent, below=1)
    told = f"There is a tenant {slug} already."
    with places.taken(_SLUG, message=told, pointer="/slug"), transaction.atomic():
        places.lock_tree()
        tenant = Tenant.objects.create(
            parent=parent,
            name=naming.checked(name, alike=_names(parent)),
            slug=slug,
            weight=weight,
            created_at=at,
        )
        entry = columns.entry(
            tenant,
            action="tenant.create",
            before={},
            after={"name": tenant.name, "slug": slug, "parent": _id(parent)},
        )
        trail.record(entry, actor=actor, at=at)
    return tenant


def rename(*, actor: Actor, tenant: Tenant, name: str, at: datetime) -> Tenant:
    """Its slug, and the namespaces of its projects, stay. Raises as `create` for it, and for the
    name."""
    access.authorize_tenant(actor, Action.MANAGE_MEMBERS, tenant=tenant)
    with transaction.atomic():
        places.lock_tree()
        values = {
            "name": naming.checked(
                name,
                alike=_names(tenant.parent).exclude(id=tenant.id),
            )
        }
        return columns.say(tenant, action="tenant.rename", values=values, actor=actor, at=at)


def move(*, actor: Actor, tenant: Tenant, parent: Tenant | None, at: datetime) -> Tenant:
    """Hang it, with all below it, under `parent`, or make it an organisation: for who owns both
    places.

    Raises NotFound or NotAllowed for either place, Invalid for a parent that is below it, for a
    name that reads like one of its new siblings', and where the tree gets too deep, Conflict while
    any work below it waits or runs.
    """
    access.authorize_tenant(actor, Action.MANAGE_MEMBERS, tenant=tenant)
    _authorize(actor, tenant.parent)
    _authorize(actor, parent)
    below = actor.tenants_below(tenant.id)
    if parent is not None and parent.id in below:
        message = f"{parent.name} is {tenant.name} itself, or below it: that would be a cycle."
        raise Invalid(message, pointer="/parent", code="cycle")
    deepest = max(len(list(actor.tenants_above(each))) for each in below)
    _check_levels(actor, parent, below=1 + deepest - len(list(actor.tenants_above(tenant.id))))
    with transaction.atomic():
        places.lock_tree()
        naming.checked(
            tenant.name,
            alike=_names(parent).exclude(id=tenant.id),
            pointer="/parent",
        )
        with places.refused_while_busy(tenant.name):
            was = Tenant.objects.get(id=tenant.id)
            to = parent.id if parent else None
            places.record_left(was, of=was.parent_id, to=to, actor=actor, at=at)
            values = {"parent_id": _id(parent)}
            return columns.say(tenant, action="tenant.move", values=values, actor=actor, at=at)


def _authorize(actor: Actor, parent: Tenant | None) -> None:
    """Whether they may say what hangs there; None is the fleet."""
    if parent is None:
        access.authorize_fleet(actor, Action.MANAGE_MEMBERS)
    else:
        access.authorize_tenant(actor, Action.MANAGE_MEMBERS, tenant=parent)


def _check_levels(actor: Actor, parent: Tenant | None, *, below: int) -> None:
    above = len(list(actor.tenants_above(parent.id))) if parent else 0
    if above + below > MOST_LEVELS:
        message = f"The tree would have {above + below} levels; {MOST_LEVELS} are the most."
        raise Invalid(message, pointer="/parent", code="too-deep")


def _id(parent: Tenant | None) -> str | None:
    return str(parent.id) if parent else None


def _names(parent: Tenant | None) -> QuerySet[Tenant, str]:
    """Of all that hang there."""
    return Tenant.objects.filter(parent=parent).values_list("name", flat=True)
