"""Endpoints about connecting a cluster: what lets Berth in, and what of that works."""

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from clusters import registry, selectors
from clusters.parts import Part
from clusters.services import probes
from clusters.web import serializers as s
from controlplane.api.pagination import Keyset
from controlplane.api.render import Only, YamlRenderer
from controlplane.api.schema import operation
from controlplane.api.views import ApiView, many
from controlplane.kernel.errors import Invalid
from tenants import access
from tenants.access import Action

type Out = dict[str, Any]  # Any: JSON values


class ManifestApi(ApiView):
    renderer_classes = [YamlRenderer]
    content_negotiation_class = Only

    @operation(
        "clusters_manifest",
        tag="clusters",
        summary="What to apply in a cluster so that Berth may work there (fleet-wide roles)",
        answers={(200, YamlRenderer.media_type): str},
        query=s.ManifestQuery,
        problems=(503,),
    )
    def get(self, request: Request) -> Response:
        access.authorize_fleet(self.actor, Action.VIEW)
        asked = self.query(s.ManifestQuery)
        try:
            text = registry.manifest(
                user=asked.get("user"),
                token_h=asked["token_hours"],
                parts=[Part(part) for part in asked.get("parts", "").split(",") if part],
            )
        except Invalid as error:
            raise Invalid(error.message, pointer=error.pointer.replace("/", "?")) from error
        return Response(text)


class ProbesApi(ApiView):
    pagination_class = Keyset

    @operation(
        "clusters_probes",
        tag="clusters",
        summary="The last probes of a cluster, the newest first (fleet-wide roles)",
        answers={200: s.ProbeOut(many=True)},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        access.authorize_fleet(self.actor, Action.VIEW)
        self.query()
        rows = selectors.probes(cluster=selectors.cluster(id=id))
        return self.page(rows, order=["-id"], shape=many(s.ProbeOut))

    @operation(
        "clusters_ask_probe",
        tag="clusters",
        summary="Have it tried what of all that Berth needs of a cluster works (fleet operators)",
        answers={202: s.ProbeOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        """One that is under way is the answer. Its steps come one by one: ask for it again."""

        def make() -> Out:
            access.authorize_fleet(self.actor, Action.OPERATE)
            self.no_body()
            asked = probes.ask(
                cluster=selectors.cluster(id=id), actor_name=self.actor.name, at=self.at
            )
            return s.ProbeOut(asked).data

        return self.once(make, status=202)


class ProbeApi(ApiView):
    @operation(
        "clusters_probe",
        tag="clusters",
        summary="One probe of a cluster (fleet-wide roles)",
        answers={200: s.ProbeOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID, probe_id: UUID) -> Response:
        access.authorize_fleet(self.actor, Action.VIEW)
        self.query()
        found = selectors.probe(cluster=selectors.cluster(id=id), id=probe_id)
        return Response(s.ProbeOut(found).data)


class ExposureApi(ApiView):
    @operation(
        "clusters_exposure",
        tag="clusters",
        summary="Whether pods that ask for no device see some there (fleet-wide roles)",
        answers={200: s.ExposureOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        access.authorize_fleet(self.actor, Action.VIEW)
        self.query()
        found = selectors.exposure(cluster=selectors.cluster(id=id))
        return Response(s.ExposureOut(found).data)
