"""Channels by which other systems are told: made, tried, taken away. Address and secret are sealed
here, and opened only where something is sent."""

import secrets
from collections.abc import Collection
from datetime import datetime, timedelta

import orjson
from django.conf import settings
from django.db import transaction

from clusters.sealing import PrivateKey, PublicKey, Unopened, open_sealed, seal
from controlplane.audit.services import Entry
from controlplane.kernel import text
from controlplane.kernel.errors import Conflict, Invalid, Unavailable
from controlplane.kernel.throttle import Throttle
from tenants import access
from tenants.access import Action, Actor, Place
from tenants.models import TOLD, Channel, ChannelKind, Delivery, Event, Notice
from tenants.services import trail, webhooks
from tenants.services.places import taken
from tenants.services.webhooks import Target

MAX_CHANNELS = 20
"""At one place."""
TRIED = Throttle(most=10, window=timedelta(minutes=1))
"""Each is a message to an address of somebody's choice."""
PREFIX = "berth_hook_"
"""Of a secret that signs: secret scanners find it by this."""


def make(
    *,
    actor: Actor,
    of: Place,
    name: str,
    kind: ChannelKind,
    url: str,
    events: Collection[str],
    at: datetime,
) -> tuple[Channel, str]:
    """A new channel, and the secret by which it signs, which can't be had again; "" of one of
    Slack's kind.

    Raises NotFound or NotAllowed, Invalid for a name, address or events that are none, Conflict
    for a name that is there, and Unavailable without BERTH_SEAL_KEY.
    """
    access.authorize_at(actor, Action.MANAGE_CHANNELS, place=of)
    name, url = name.strip(), url.strip()
    _check(name=name, url=url, events=events)
    secret = PREFIX + secrets.token_hex(32) if kind == ChannelKind.JSON else ""
    project, tenant = access.project_and_tenant(of)
    channel = Channel(
        project=project,
        tenant=tenant,
        name=name,
        kind=kind,
        host=webhooks.host_of(url),
        events=sorted(set(events)),
        made_at=at,
    )
    box = orjson.dumps({"url": url, "secret": secret})
    channel.sealed = seal(_seal_key(), box, context=channel.context)
    with transaction.atomic():
        with taken(
            "channel_name_once", message=f"There is a channel {name} already.", pointer="/name"
        ):
            channel.save(force_insert=True)
        if Channel.objects.filter(project=project, tenant=tenant).count() > MAX_CHANNELS:
            raise Invalid(f"There are {MAX_CHANNELS} channels here; remove one first.")
        _record(actor, channel, "channel.make", at)
    return channel, secret


def remove(*, actor: Actor, channel: Channel, at: datetime) -> None:
    """Nothing is sent there any more, not even what waits. Raises NotFound or NotAllowed."""
    access.authorize_at(actor, Action.MANAGE_CHANNELS, place=place_of(channel))
    with transaction.atomic():
        _record(actor, channel, "channel.remove", at)
        channel.delete()


def try_out(*, actor: Actor, channel: Channel, at: datetime) -> None:
    """Have a test sent there, which says that it is one. Raises NotFound, NotAllowed, TooOften."""
    access.authorize_at(actor, Action.MANAGE_CHANNELS, place=place_of(channel))
    TRIED.take(who=str(actor.user.id), at=at)
    with transaction.atomic():
        notice = Notice(event=Event.TEST, project=channel.project, at=at)
        notice.cause, notice.body = f"test:{notice.id}", {"channel": channel.name}
        notice.save(force_insert=True)
        Delivery.objects.create(notice=notice, channel=channel, due_at=at)
        _record(actor, channel, "channel.test", at)


def place_of(channel: Channel) -> Place:
    return channel.project or channel.tenant


def target(channel: Channel) -> Target:
    """Where it leads, and by what it signs. Raises Unopened in a process that has not its key."""
    keys = [PrivateKey(raw) for raw in settings.BERTH_OPEN_KEYS]
    return Target(
        **orjson.loads(open_sealed(keys, bytes(channel.sealed), context=channel.context))
    )


def reseal() -> int:
    """Seal under BERTH_SEAL_KEY what is sealed under another key; how many were. Raises
    Unavailable without one, Conflict where nothing could open them then or one can't be opened
    now."""
    key = _seal_key()
    if key not in {PrivateKey(raw).public for raw in settings.BERTH_OPEN_KEYS}:
        raise Conflict("BERTH_SEAL_KEY is of none of the keys in BERTH_OPEN_KEYS.")
    resealed = 0
    for channel in Channel.objects.order_by("id"):
        if channel.key_id == key.id.hex():
            continue
        try:
            found = target(channel)
        except Unopened as error:
            raise Conflict(f"The channel {channel.id} can't be opened: {error}.") from None
        box = orjson.dumps({"url": found.url, "secret": found.secret})
        channel.sealed = seal(key, box, context=channel.context)
        channel.save(update_fields=["sealed"])
        resealed += 1
    return resealed


def _check(*, name: str, url: str, events: Collection[str]) -> None:
    if fault := text.fault(name):
        raise Invalid(f"{fault}: not accepted in a name.", pointer="/name", code="bad-character")
    if not 1 <= len(name) <= 60:
        raise Invalid("A name has 1 to 60 characters.", pointer="/name")
    if fault := webhooks.url_fault(url):
        raise Invalid(fault, pointer="/url")
    unknown = sorted(set(events) - set(TOLD))
    if unknown or not events:
        told = f"{unknown[0]} is none. " if unknown else "At least one is wanted. "
        raise Invalid(f"{told}Known: {', '.join(TOLD)}.", pointer="/events")


def _seal_key() -> PublicKey:
    if not settings.BERTH_SEAL_KEY:
        raise Unavailable("Nothing can be sealed here: BERTH_SEAL_KEY is not set.")
    return PublicKey(settings.BERTH_SEAL_KEY)


def _record(actor: Actor, channel: Channel, action: str, at: datetime) -> None:
    tenant_id, project_id = access.ids_at(place_of(channel))
    entry = Entry(
        action=action,
        target_type="channel",
        target_id=channel.id,
        tenant_id=tenant_id,
        project_id=project_id,
        after={
            "name": channel.name,
            "kind": str(channel.kind),
            "host": channel.host,
            "events": channel.events,
        },
    )
    trail.record(entry, actor=actor, at=at)
