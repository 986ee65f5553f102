"""Nodes that a cluster is asked for, because work waits for them."""

from django.db import models
from django.db.models import Q

from clusters.models import NodePool
from controlplane.kernel.models import Row
from scheduler.models.workload import Workload


class AskState(models.TextChoices):
    ASKING = "asking"  # its placeholders are there, or about to be
    CLOSING = "closing"  # they are taken away
    GIVEN = "given"  # the nodes came
    WITHDRAWN = "withdrawn"  # nobody wants them any more
    LATE = "late"  # they did not come in time


ENDED = (AskState.GIVEN, AskState.WITHDRAWN, AskState.LATE)


class NodeAsk(Row):
    """Nodes of a pool, asked for one workload; the loop alone moves it on (`loop/node_asks`).

    `nodes` has for each what the workload takes there (`core.needs.NodeNeed`), and there is a
    placeholder pod for each. `came` are the names of the nodes that count as the answer.
    `error` is why the cluster took no placeholder at the last try, "" where it took all.
    From CLOSING on `outcome` is how it ends; then no placeholder of it is there.
    """

    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="node_asks")
    pool = models.ForeignKey(NodePool, on_delete=models.PROTECT, related_name="asks")
    nodes = models.JSONField()
    came = models.JSONField(default=list)
    state = models.CharField(max_length=9, choices=AskState, default=AskState.ASKING)
    outcome = models.CharField(max_length=9, blank=True)
    error = models.CharField(max_length=200, blank=True, db_default="")
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

    def __str__(self) -> str:
        return f"{self.workload_id} {self.state}"
