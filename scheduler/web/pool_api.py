"""Endpoints about what fits into a cluster now, and about how MIG devices had better be cut."""

from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import selectors as clusters
from controlplane.api.fields import StrictSerializer, Text
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from scheduler.selectors import layouts, pools
from scheduler.services import asking
from tenants import access
from tenants.access import Action


class PodsOut(serializers.Serializer[tuple[int, int]]):
    gpus = serializers.IntegerField(help_text="Whole GPUs of each pod, all on one node.")
    pods = serializers.IntegerField(help_text="So many of them fit now, beside each other.")


class FitsOut(serializers.Serializer[pools.Fits]):
    """Without a level anywhere in the cluster; else in the domain of that level with most room."""

    level = serializers.CharField(allow_blank=True)
    pods = PodsOut(many=True)


class HourOut(serializers.Serializer[pools.Hour]):
    """Means over an hour."""

    start = serializers.DateTimeField()
    free_milli = serializers.IntegerField()
    stranded_milli = serializers.IntegerField()


class PoolOut(serializers.Serializer[dict[str, object]]):
    """Amounts in thousandths of a GPU, of usable ones; a slice counts by its memory.

    Stranded is free, on a node in part use, and such that no pod that waits could get it.
    Scattered is the part of what is free, in thousandths, that is not on nodes that are all free.
    """

    model = serializers.CharField()
    at = serializers.DateTimeField()
    total_milli = serializers.IntegerField()
    free_milli = serializers.IntegerField()
    stranded_milli = serializers.IntegerField()
    scattered_milli = serializers.IntegerField()
    whole_nodes = serializers.IntegerField()
    fits = FitsOut(many=True)
    trend = HourOut(many=True)


class PoolsOut(serializers.Serializer[dict[str, object]]):
    cluster = serializers.CharField()
    pools = PoolOut(many=True)


class PoolsQuery(StrictSerializer):
    model = Text(required=False, max_length=80, help_text="That model alone.")


class PoolFitApi(ApiView):
    @operation(
        "pools_fit",
        tag="clusters",
        summary="What fits into a cluster now, by GPU model, what is stranded, and the last day",
        answers={200: PoolsOut},
        query=PoolsQuery,
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        asked = self.query(PoolsQuery)
        cluster = clusters.cluster(id=id)
        trends = pools.trends(cluster_id=id, at=self.at)
        found = [
            {
                "model": one.model,
                "at": one.at,
                "total_milli": one.total_milli,
                "free_milli": one.free_milli,
                "stranded_milli": one.stranded_milli,
                "scattered_milli": one.scattered_milli,
                "whole_nodes": one.whole_nodes,
                "fits": [
                    {
                        "level": each.level,
                        "pods": [{"gpus": gpus, "pods": count} for gpus, count in each.pods],
                    }
                    for each in pools.fits(one)
                ],
                "trend": trends.get(one.model, ()),
            }
            for one in pools.newest(cluster_id=id, at=self.at)
            if asked.get("model") in (None, one.model)
        ]
        return Response(PoolsOut({"cluster": cluster.name, "pools": found}).data)


class SlicesOut(serializers.Serializer[dict[str, object]]):
    profile = serializers.CharField()
    count = serializers.IntegerField()


class CutOut(serializers.Serializer[dict[str, object]]):
    devices = serializers.IntegerField(help_text="So many devices are to be cut so.")
    slices = SlicesOut(many=True)


class AdviceOut(serializers.Serializer[dict[str, object]]):
    """Mean waits are simulated, over the last 30 days. `now_s` is null when nothing is cut once
    and for all."""

    cluster = serializers.CharField()
    model = serializers.CharField()
    mean_wait_s = serializers.IntegerField()
    now_s = serializers.IntegerField(allow_null=True)
    layout = CutOut(many=True)


class LayoutAdviceOut(serializers.Serializer[dict[str, object]]):
    pools = AdviceOut(many=True)


class LayoutAdviceApi(ApiView):
    @operation(
        "layouts_advice",
        tag="clusters",
        summary="How to cut the MIG devices of each pool for what was asked of it (fleet roles)",
        answers={200: LayoutAdviceOut},
        problems=(429,),
    )
    def get(self, request: Request) -> Response:
        access.authorize_fleet(self.actor, Action.VIEW)
        self.query()
        with asking.turn(actor=self.actor, at=self.at):
            found = layouts.advice(at=self.at)
        return Response(LayoutAdviceOut({"pools": [_advice(one) for one in found]}).data)


def _advice(pool: layouts.Advised) -> dict[str, object]:
    one = pool.advice
    return {
        "cluster": pool.cluster,
        "model": one.model,
        "mean_wait_s": one.mean_wait_s,
        "now_s": one.now_s,
        "layout": [
            {
                "devices": devices,
                "slices": [{"profile": profile, "count": count} for profile, count in slices],
            }
            for slices, devices in one.layouts
        ],
    }
