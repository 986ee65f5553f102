"""Reading how projects are confined in clusters."""

from uuid import UUID

from django.db.models import QuerySet

from scheduler.models import Confinement
from tenants.access import Actor, for_actor


def here(*, actor: Actor, cluster_id: UUID) -> QuerySet[Confinement]:
    """Those in the cluster of projects that the actor sees."""
    rows = Confinement.objects.filter(cluster_id=cluster_id).select_related("project__tenant")
    return for_actor(rows, actor=actor)
