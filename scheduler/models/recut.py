"""Nodes whose MIG devices are cut anew."""

from datetime import timedelta

from django.db import models
from django.db.models import Q

from clusters.models import Node
from controlplane.kernel.models import Row


class RecutMode(models.TextChoices):
    WAIT = "wait"  # until what runs there has ended by itself
    PREEMPT = "preempt"  # what may be preempted there is, and the rest is waited for


class RecutState(models.TextChoices):
    PLANNED = "planned"  # nothing is done before `starts_at`
    CORDONING = "cordoning"  # Berth places nothing there any more; the cluster is about to be told
    EMPTYING = "emptying"  # until nothing holds a device there
    CUTTING = "cutting"  # the MIG manager is told, or about to be
    CHECKING = "checking"  # it says that it is done
    ROLLING_BACK = "rolling-back"  # it is to cut the node as it was
    OPENING = "opening"  # the cordon is taken off, if it was Berth's
    DONE = "done"
    FAILED = "failed"
    CALLED_OFF = "called-off"


LONGEST = timedelta(days=7)
"""Of the window in which a node has to become empty."""
ENDED = (RecutState.DONE, RecutState.FAILED, RecutState.CALLED_OFF)
BEGUN = tuple(state for state in RecutState if state not in (*ENDED, RecutState.PLANNED))
"""While it is in one of these, nothing is placed on the node: a trigger holds that."""


class Recut(Row):
    """One recut of a node, from its plan to its end; the loop alone moves it on
    (`loop/recutting/recuts`).

    `wanted` and `before` have, for each device, how many slices of which profile, {} for a whole
    one. `config` and `config_before` are the names under which the cluster's MIG managers know
    them, `node_uid` is which machine it began on. What is not empty by `ends_at` is left as it
    is. `since` is when its state began, `told_at` when the ways were last written there.
    `cordoned_at` is when a cordon that somebody had taken off was put on again, `said_at` when the
    node's MIG manager was last told a name, `busy_at` when it was last seen at work.
    `outcome` is how it will end, from when that is settled; `trouble` says why it does not end
    well. `stuck`: it has failed and the node could not be cut back, so it stays cordoned.
    """

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="recuts")
    node_uid = models.CharField(max_length=253, blank=True)
    wanted = models.JSONField()
    before = models.JSONField()
    config = models.CharField(max_length=63)
    config_before = models.CharField(max_length=63, blank=True)
    mode = models.CharField(max_length=7, choices=RecutMode)
    planned_by = models.CharField(max_length=150)
    planned_at = models.DateTimeField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    state = models.CharField(max_length=12, choices=RecutState, default=RecutState.PLANNED)
    since = models.DateTimeField()
    told_at = models.DateTimeField(null=True, blank=True)
    cordoned_at = models.DateTimeField(null=True, blank=True)
    said_at = models.DateTimeField(null=True, blank=True)
    busy_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=10, blank=True)
    trouble = models.CharField(max_length=500, blank=True)
    stuck = models.BooleanField(default=False)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node"], condition=Q(ended_at__isnull=True), name="recut_one_live_a_node"
            ),
            models.CheckConstraint(
                condition=Q(state__in=RecutState.values), name="recut_state_known"
            ),
            models.CheckConstraint(
                condition=Q(mode__in=RecutMode.values), name="recut_mode_known"
            ),
            models.CheckConstraint(
                condition=Q(outcome__in=["", *ENDED]), name="recut_outcome_known"
            ),
            models.CheckConstraint(
                condition=Q(state__in=ENDED, ended_at__isnull=False)
                | (Q(ended_at__isnull=True) & ~Q(state__in=ENDED)),
                name="recut_ended_in_its_last_state",
            ),
            models.CheckConstraint(
                condition=Q(stuck=False) | Q(state=RecutState.FAILED),
                name="recut_stuck_has_failed",
            ),
            models.CheckConstraint(
                condition=Q(ends_at__gt=models.F("starts_at")), name="recut_window"
            ),
        ]

    @property
    def live(self) -> bool:
        return self.ended_at is None

    def __str__(self) -> str:
        return f"{self.node_id} {self.state}"
