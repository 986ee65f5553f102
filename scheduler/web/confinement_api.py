"""Endpoints about how projects are confined in a cluster."""

from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import selectors as clusters
from clusters.services import clusters as cluster_services
from controlplane.api.fields import StrictSerializer
from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView, many
from scheduler.models import Confinement
from scheduler.selectors import confinements
from tenants import access
from tenants.access import Action


class DriftOut(serializers.Serializer[dict[str, str]]):
    """One field, as JSON; an object that was not there has none."""

    object = serializers.CharField()
    field = serializers.CharField(allow_blank=True)
    found = serializers.CharField(allow_blank=True)
    wanted = serializers.CharField(allow_blank=True)


class ConfinementOut(serializers.Serializer[Confinement]):
    """`drift` is the last that was found, at drifted_at; it stands while repaired_at is null.
    `error` is why it could not be applied or looked at the last time."""

    id = serializers.UUIDField()
    project = serializers.UUIDField(source="project_id")
    namespace = serializers.CharField(source="project.namespace")
    applied_at = serializers.DateTimeField(allow_null=True)
    checked_at = serializers.DateTimeField(allow_null=True)
    drift = DriftOut(many=True)
    drifted_at = serializers.DateTimeField(allow_null=True)
    repaired_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField(allow_blank=True)


class RepairIn(StrictSerializer):
    repair = serializers.BooleanField(help_text="False only tells drift.")


class RepairOut(serializers.Serializer[dict[str, object]]):
    repair = serializers.BooleanField()


class ConfinementsApi(ApiView):
    pagination_class = Keyset

    @operation(
        "clusters_projects",
        tag="clusters",
        summary="How projects are confined in a cluster, and what somebody changed of it",
        answers={200: ConfinementOut(many=True)},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        self.query()
        cluster = clusters.cluster(id=id)
        rows = confinements.here(actor=self.actor, cluster_id=cluster.id)
        return self.page(rows, order=["id"], shape=many(ConfinementOut))


class DriftApi(ApiView):
    @operation(
        "clusters_repair_drift",
        tag="clusters",
        summary="Put drift of confinements right in a cluster, or only tell it (fleet operators)",
        takes=RepairIn,
        answers={200: RepairOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> dict[str, object]:
            access.authorize_fleet(self.actor, Action.OPERATE)
            repair = self.body(RepairIn)["repair"]
            cluster_services.repair_drift(
                cluster=clusters.cluster(id=id),
                repair=repair,
                actor=self.actor.label,
                actor_name=self.actor.name,
                at=self.at,
            )
            return {"repair": repair}

        return self.once(make, status=200)
