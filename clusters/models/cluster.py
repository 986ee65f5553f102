"""One Kubernetes API that Berth may place work on. Its credential is a row of its own."""

from django.db import models
from django.db.models import Q

from controlplane.kernel.models import Row


class ClusterState(models.TextChoices):
    NEW = "new"  # registered, or put back from a backup, and not listed since
    ACTIVE = "active"
    DEGRADED = "degraded"  # silent for a minute: nothing new is placed
    LOST = "lost"  # silent for ten: its placements are unknown, and kept


class Cluster(Row):
    """`seen_at` is when all that its lists and its watches of nodes and pods had told was stored,
    both watches stood and its API answered. `use_seen_at` is when it was last told how much its
    pods use their devices, None where nobody measures that, and `use_error` what was wrong with
    the newest answer. `simulated` is shown on the cluster's own pages and
    beside what runs there. `server` is where its API is, as whoever registered it or stored its
    credential last said; "" while nobody has.

    `failing_since` is since when each try to follow it got no answer, the last of them at
    `failed_at`, by the database's clock; both are None once it is heard, or a try failed for
    another reason. While nobody tries nothing fails: a silence of Berth's own is none of the
    cluster's.

    `heard_in` is the database into which its lists were stored when it was last heard
    (`services.restoring`), or given up unheard; "" while nobody noted that. `restored_at` is when
    it was found that this is another one, put back from a backup: until it is heard nothing is
    started or stopped there, and its state is NEW, or LOST where the others go on without it.

    `left_out` says, of "nodes", "pods", "devices", "claims" and "node_pools", what of its last
    list made no sense or is not used: how many, and of the first its name and why; and of
    "coming", why nobody could read which nodes can come.

    `asks_for_nodes` is whether its autoscaler is asked for nodes that work waits for, and
    `foreign_requests_count` how many requests of others it has accepted and not yet answered.
    `repair_drift` is whether what somebody changed of a project's confinement there is put back,
    or only told. `inventory_rev` grows with each change of its nodes or devices, so that caches
    know.
    """

    name = models.SlugField(max_length=40, unique=True)
    region = models.CharField(max_length=60, blank=True)
    server = models.CharField(max_length=2048, blank=True, default="", db_default="")
    state = models.CharField(max_length=10, choices=ClusterState, default=ClusterState.NEW)
    version = models.CharField(max_length=60, blank=True)
    simulated = models.BooleanField(default=False)
    seen_at = models.DateTimeField(null=True, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    heard_in = models.CharField(max_length=200, blank=True, default="", db_default="")
    restored_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=500, blank=True)
    use_seen_at = models.DateTimeField(null=True, blank=True)
    use_error = models.CharField(max_length=500, blank=True, default="", db_default="")
    left_out = models.JSONField(default=dict, db_default={}, blank=True)
    repair_drift = models.BooleanField(default=True, db_default=True)
    asks_for_nodes = models.BooleanField(default=False, db_default=False)
    foreign_requests_count = models.PositiveIntegerField(default=0, db_default=0)
    inventory_rev = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                # "draining" is what versions before wrote for a queue that is held.
                condition=Q(state__in=[*ClusterState.values, "draining"]),
                name="cluster_state_known",
            )
        ]

    def __str__(self) -> str:
        return self.name
