"""Nodes that a cluster is asked for, because work waits for them."""

from uuid import UUID

from django.db import models
from django.db.models import Q

from clusters.models import NodePool
from controlplane.kernel.models import Row
from scheduler.models.workload import Workload


class AskState(models.TextChoices):
    ASKING = "asking"  # what stands for it in the cluster is there, or about to be
    CLOSING = "closing"  # that is taken away
    GIVEN = "given"  # the nodes came
    WITHDRAWN = "withdrawn"  # nobody wants them any more
    LATE = "late"  # they did not come in time
    FAILED = "failed"  # the autoscaler gave the request up


ENDED = (AskState.GIVEN, AskState.WITHDRAWN, AskState.LATE, AskState.FAILED)


class NodeAsk(Row):
    """Nodes of a pool, asked for one workload; the loop alone moves it on
    (`loop/scaling/node_asks`).

    `nodes` has for each what the workload takes there (`core.simulating.needs`). For each there is
    a placeholder pod; or, where it was asked on `terms` (`NodePool.terms`, as they were then), for
    all of them one request (`loop/scaling/ways`). `came` are the names of the nodes that count
    as the answer. `error` is why the cluster did not take all of it at the last try, "" where it
    did; of one that FAILED, why. `queued` is whether the autoscaler has accepted the request.
    From CLOSING on `outcome` is how it ends; then nothing of it is there.
    """

    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="node_asks")
    pool = models.ForeignKey(NodePool, on_delete=models.PROTECT, related_name="asks")
    nodes = models.JSONField()
    terms = models.JSONField(default=dict, db_default={})
    came = models.JSONField(default=list)
    state = models.CharField(max_length=9, choices=AskState, default=AskState.ASKING)
    outcome = models.CharField(max_length=9, blank=True)
    error = models.CharField(max_length=200, blank=True, db_default="")
    queued = models.BooleanField(default=False, db_default=False)
    asked_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "pool"],
                condition=Q(ended_at__isnull=True),
                name="node_ask_one_live_a_workload",
            ),
            models.CheckConstraint(
                condition=Q(state__in=AskState.values), name="node_ask_state_known"
            ),
            models.CheckConstraint(
                condition=Q(outcome="", state=AskState.ASKING)
                | (Q(outcome__in=ENDED) & ~Q(state=AskState.ASKING)),
                name="node_ask_outcome_once_it_closes",
            ),
            models.CheckConstraint(
                condition=Q(state__in=ENDED, ended_at__isnull=False)
                | (Q(ended_at__isnull=True) & ~Q(state__in=ENDED)),
                name="node_ask_ended_in_its_last_state",
            ),
        ]

    @property
    def is_answered(self) -> bool:
        """All nodes came."""
        return len(self.came) >= len(self.nodes)

    @property
    def request_name(self) -> str:
        return request_name(self.id)

    def __str__(self) -> str:
        return f"{self.workload_id} {self.state}"


def request_name(ask: UUID) -> str:
    """What the request of an ask is called in its cluster."""
    return f"nodes-{ask}"
