"""Of what people are told by mail."""

from collections.abc import Collection

from tenants.access import Actor
from tenants.models import OF_WORK, User


def be_told(*, actor: Actor, of: Collection[str]) -> list[str]:
    """Of these events of their own work, each one of OF_WORK, and no others; the same in the
    order of OF_WORK."""
    events = [event.value for event in OF_WORK if event in of]
    User.objects.filter(id=actor.user.id).update(mailed_of=events)
    actor.user.mailed_of = events
    return events
