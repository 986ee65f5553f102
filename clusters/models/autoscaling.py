"""Node pools that make nodes by themselves, and the nodes that they are making."""

from django.db import models
from django.db.models import Q

from clusters.models.cluster import Cluster
from clusters.models.node import Node
from clusters.origin import NODE_POOLS
from controlplane.kernel.models import Row


class NodePool(Row):
    """A pool of Karpenter's, as its cluster last showed it; or, with a `selector`, one that no
    cluster shows, as an operator declared it: all its nodes have these labels, and are asked for
    by a request of that class with these parameters.

    `limits` and `used` are `autoscaling.Amounts` by name. A new node is expected to be as `like`,
    the newest that the pool has had with GPUs; before there is one, as an operator said: so many
    `node_gpus` of `node_model`, cores and memory; of neither, nothing is expected to come.
    `making_count` nodes are being made, and `room_count` more can come, None where nobody limits
    that. `start_p50_s` and `start_p90_s` are what the last `start_count` took, from the claim to
    a node with all its devices. A pool that is gone keeps its row.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="node_pools")
    name = models.CharField(max_length=253)
    ready = models.BooleanField(default=True)
    model = models.CharField(max_length=80, blank=True)
    accelerator = models.CharField(max_length=80, blank=True)
    limits = models.JSONField(default=dict)
    used = models.JSONField(default=dict)
    like = models.ForeignKey(
        Node, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    selector = models.JSONField(default=dict, db_default={})
    request_class = models.CharField(max_length=253, blank=True, default="", db_default="")
    parameters = models.JSONField(default=dict, db_default={})
    node_model = models.CharField(max_length=80, blank=True)
    node_gpus = models.PositiveSmallIntegerField(null=True, blank=True)
    node_cpu_milli = models.BigIntegerField(null=True, blank=True)
    node_memory_mib = models.BigIntegerField(null=True, blank=True)
    making_count = models.PositiveIntegerField(default=0)
    room_count = models.PositiveIntegerField(null=True, blank=True)
    start_count = models.PositiveIntegerField(default=0)
    start_p50_s = models.PositiveIntegerField(null=True, blank=True)
    start_p90_s = models.PositiveIntegerField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="node_pool_once_a_cluster"),
            models.CheckConstraint(
                condition=Q(selector={}, request_class="", parameters={})
                | (~Q(selector={}) & ~Q(request_class="")),
                name="node_pool_declared_whole_or_not",
            ),
            models.CheckConstraint(
                condition=Q(
                    node_model="",
                    node_gpus__isnull=True,
                    node_cpu_milli__isnull=True,
                    node_memory_mib__isnull=True,
                )
                | (
                    ~Q(node_model="")
                    & Q(
                        node_gpus__isnull=False,
                        node_gpus__gte=1,
                        node_gpus__lte=128,
                        node_cpu_milli__isnull=False,
                        node_cpu_milli__gte=1,
                        node_memory_mib__isnull=False,
                        node_memory_mib__gte=1,
                    )
                ),
                name="node_pool_shape_whole_or_none",
            ),
        ]

    @property
    def is_declared(self) -> bool:
        """By an operator; its nodes are asked for all at once."""
        return bool(self.request_class)

    @property
    def terms(self) -> dict[str, object]:
        """Those on which a declared pool is asked for nodes; {} of another."""
        names = ("selector", "request_class", "parameters") if self.is_declared else ()
        return {name: getattr(self, name) for name in names}

    @property
    def node_labels(self) -> dict[str, str]:
        """Those by which its nodes are told from all others."""
        return self.selector or {NODE_POOLS[0]: self.name}

    @property
    def figures(self) -> tuple[int | str | bool | None, ...]:
        """All that is told of it to people, but for what a node has."""
        counts = self.making_count, self.room_count, self.start_count
        return self.name, self.ready, *counts, self.start_p50_s, self.start_p90_s

    def __str__(self) -> str:
        return self.name


class NodeClaim(Row):
    """A node of a pool from the order on. `ready_at` is when all of it was there for the first
    time, by its cluster's clock, and seen so; None before that."""

    pool = models.ForeignKey(NodePool, on_delete=models.CASCADE, related_name="claims")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=253)
    launched = models.BooleanField(default=False)
    registered = models.BooleanField(default=False)
    node = models.CharField(max_length=253, blank=True)
    created_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pool", "uid"], name="node_claim_once_a_pool")
        ]
        indexes = [models.Index(fields=["pool", "-ready_at"], name="node_claim_by_ready")]

    def __str__(self) -> str:
        return self.name
