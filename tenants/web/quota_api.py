"""Endpoints about amounts and money: quotas, rates, usage, charges."""

from decimal import Decimal
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from clusters.models import Cluster, Flavor
from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView, many
from controlplane.kernel.errors import Invalid
from scheduler.selectors import guarantees
from tenants import access
from tenants.selectors import quotas as selectors
from tenants.selectors import spend
from tenants.services import quotas, rates
from tenants.web import serializers as s
from tenants.web.amounts import amounts

type Out = dict[str, Any]  # Any: JSON values


def flavor_named(name: str, *, pointer: str = "/flavor") -> Flavor:
    """Raises Invalid when there is none of that name."""
    flavor = Flavor.objects.filter(name=name).first()
    if flavor is None:
        raise Invalid("There is no such flavor.", pointer=pointer, code="unknown-flavor")
    return flavor


def _cluster(name: str | None) -> Cluster | None:
    if name is None:
        return None
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise Invalid("There is no such cluster.", pointer="/cluster", code="unknown-cluster")
    return cluster


class QuotasApi(ApiView):
    pagination_class = Keyset

    @operation(
        "quotas_list",
        tag="quotas",
        summary="Quotas of your projects",
        answers={200: s.QuotaOut(many=True)},
        query=s.QuotasQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        asked = self.query(s.QuotasQuery)
        return self.page(
            selectors.quotas(
                actor=self.actor, project_id=asked.get("project"), flavor=asked.get("flavor")
            ),
            order=["id"],
            shape=many(s.QuotaOut),
        )

    @operation(
        "quotas_set",
        tag="quotas",
        summary="Set a project's quota of a flavor (operators)",
        takes=s.QuotaIn,
        answers={200: s.QuotaSetOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            body = self.body(s.QuotaIn)
            project = access.project_or_404(self.actor, body["project"])
            flavor = flavor_named(body["flavor"])
            quota = quotas.set_quota(
                actor=self.actor,
                project=project,
                flavor=flavor,
                amounts=amounts(body, at=self.at),
                version=body["version"],
                at=self.at,
            )
            warned = list(guarantees.warnings(flavor=flavor, owner=project))
            return {**s.QuotaOut(quota).data, "warnings": warned}

        return self.once(make, status=200)


class RatesApi(ApiView):
    pagination_class = Keyset

    @operation(
        "rates_list",
        tag="spend",
        summary="Prices of flavors",
        answers={200: s.RateOut(many=True)},
        query=s.RatesQuery,
    )
    def get(self, request: Request) -> Response:
        asked = self.query(s.RatesQuery)
        return self.page(
            spend.rates(flavor=asked.get("flavor"), at=asked.get("at")),
            order=["id"],
            shape=many(s.RateOut),
        )

    @operation(
        "rates_set",
        tag="spend",
        summary="Set a flavor's price from a moment on; the one before ends (fleet operators)",
        takes=s.RateIn,
        answers={201: s.RateOut},
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            access.authorize_fleet(self.actor, access.Action.OPERATE)
            body = self.body(s.RateIn)
            made = rates.set_rate(
                actor=self.actor,
                flavor=flavor_named(body["flavor"]),
                cluster=_cluster(body.get("cluster")),
                price_per_hour=Decimal(body["price_per_hour"]),
                currency=body["currency"],
                start=body.get("from"),
                at=self.at,
            )
            return s.RateOut(made).data

        return self.once(make)


def _spend_filters(asked: dict[str, Any]) -> spend.Filters:  # Any: validated input
    return spend.Filters(
        project_id=asked.get("project"),
        flavor=asked.get("flavor"),
        workload_id=asked.get("workload"),
        since=asked.get("since"),
        until=asked.get("until"),
    )


class UsageApi(ApiView):
    pagination_class = Keyset

    @operation(
        "usage_list",
        tag="spend",
        summary="What was held, interval by interval",
        answers={200: s.UsageOut(many=True)},
        query=s.SpendQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        filters = _spend_filters(self.query(s.SpendQuery))
        return self.page(
            spend.usage(actor=self.actor, filters=filters),
            order=["id"],
            shape=many(s.UsageOut),
        )


class ChargesApi(ApiView):
    pagination_class = Keyset

    @operation(
        "charges_list",
        tag="spend",
        summary="What it cost, charge by charge",
        answers={200: s.ChargeOut(many=True)},
        query=s.SpendQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        filters = _spend_filters(self.query(s.SpendQuery))
        return self.page(
            spend.charges(actor=self.actor, filters=filters),
            order=["id"],
            shape=many(s.ChargeOut),
        )
