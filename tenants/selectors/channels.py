"""Channels at a place, with what came of what was sent there."""

from uuid import UUID

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from controlplane.kernel.errors import NotFound
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Channel, Delivery, Project, Tenant


def at_place(of: Project | Tenant | None) -> QuerySet[Channel]:
    """Of whom the caller has authorised. With each: `sent_count`, `failed_count` and
    `waiting_count` of what went there, when the last was sent (`last_sent_at`) and what was wrong
    with the latest that was not (`last_error`, at `last_try_at`)."""
    if isinstance(of, Project):
        return _told(Channel.objects.filter(project=of))
    return _told(Channel.objects.filter(project=None, tenant=of))


def one(*, id: UUID, actor: Actor) -> Channel:
    """The channel, if the actor sees its place. Raises NotFound."""
    channel = Channel.objects.select_related("project", "tenant").filter(id=id).first()
    if channel is None or not _sees(actor, channel):
        raise NotFound("There is no such channel.")
    return channel


def _sees(actor: Actor, channel: Channel) -> bool:
    if channel.project is not None:
        return access.allowed(actor, Action.VIEW, project=channel.project)
    if channel.tenant is not None:
        return access.sees_tenant(actor, channel.tenant)
    return True  # of the fleet: what may be done is for the service to say


def _told(channels: QuerySet[Channel]) -> QuerySet[Channel]:
    sent = Q(deliveries__sent_at__isnull=False)
    failed = Q(deliveries__failed_at__isnull=False)
    there = Q(deliveries__id__isnull=False)
    own = Delivery.objects.filter(channel=OuterRef("id"))
    last_sent = own.exclude(sent_at=None).order_by("-sent_at").values("sent_at")[:1]
    faulty = own.filter(sent_at=None).exclude(error="").order_by("-id")[:1]
    return channels.annotate(
        sent_count=Count("deliveries", filter=sent),
        failed_count=Count("deliveries", filter=failed),
        waiting_count=Count("deliveries", filter=there & ~sent & ~failed),
        last_sent_at=Subquery(last_sent),
        last_error=Subquery(faulty.values("error")),
    ).order_by("name", "id")
