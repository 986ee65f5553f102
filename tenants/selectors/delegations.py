"""Who stands in for whom: by an approver's own roles, for a while."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from controlplane.kernel.errors import NotFound
from tenants.access import Actor
from tenants.models import Delegation, User


def own(*, actor: Actor) -> QuerySet[Delegation]:
    """What the actor gave or was given, what is over too; order them by -id."""
    mine = Q(approver=actor.user) | Q(delegate=actor.user)
    return Delegation.objects.filter(mine).select_related("approver", "delegate")


def given(*, actor: Actor, id: UUID) -> Delegation:
    """One that the actor gave. Raises NotFound."""
    found = own(actor=actor).filter(approver=actor.user, id=id).first()
    if found is None:
        raise NotFound("There is no such delegation of yours.")
    return found


def live(*, at: datetime) -> Sequence[Delegation]:
    """Those that hold then, where both can sign in. One query."""
    rows = Delegation.objects.filter(
        Delegation.holds(at=at), approver__is_active=True, delegate__is_active=True
    )
    return list(rows.select_related("approver", "delegate").order_by("id"))


def over(*, delegate: User) -> Sequence[Delegation]:
    """The newest twenty of a delegate, whatever became of them, with the approvers' roles."""
    rows = Delegation.objects.filter(delegate=delegate).select_related("approver", "delegate")
    return list(rows.prefetch_related("approver__memberships").order_by("-id")[:20])
